"""Checks every byte of a store, then everything its numbers must satisfy."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.errors import GraphError, StoreCorruptError
from gmn_pipeline.store.checking.byte_check import check_group_bytes
from gmn_pipeline.store.checking.verify_tokens import TokenChecker
from gmn_pipeline.store.checking.verify_tree import check_tree
from gmn_pipeline.store.files.array_files import REMEDY
from gmn_pipeline.store.files.manifest_file import collect_digests
from gmn_pipeline.store.format.blocks import plan_blocks
from gmn_pipeline.store.format.encodings import ENCODINGS
from gmn_pipeline.store.format.manifest import GraphFacts
from gmn_pipeline.store.format.schema import block_group, block_specs, fixed_groups

if TYPE_CHECKING:
    from gmn_pipeline.store.reading.reader import TokenStore

OnProgress = Callable[[int], None]


def verification_steps(store: "TokenStore") -> int:
    """How often `verify_store` reports."""
    return 2 * store.manifest.blocks + len(fixed_groups(store.manifest))


def verify_store(store: "TokenStore", on_progress: OnProgress = lambda _: None) -> None:
    """Raise StoreCorruptError naming the first array that is not as it was written, or whose values cannot be.

    Bytes first: which files there are, checksums of all, digests of all groups. Then meaning: the graph and its
    fingerprint, orderings, encodings, and every token against the graph. `on_progress(1)` after each group.
    """
    check_tree(store)
    _check_bytes(store, on_progress)
    _check_digests(store)
    _check_graph(store)
    for name in store.manifest.orderings:
        _check_ordering(store, name)
    for name in store.manifest.encodings:
        _check_encoding(store, name)
    _check_tokens(store, on_progress)


def _check_bytes(store: "TokenStore", on_progress: OnProgress) -> None:
    codec = store.manifest.codec
    for group, specs in fixed_groups(store.manifest).items():
        check_group_bytes(store.storage, group, specs, codec)
        on_progress(1)
    for number in range(store.manifest.blocks):
        specs = block_specs(store.manifest, store.block_facts(number))
        check_group_bytes(store.storage, block_group(number), specs, codec)
        on_progress(1)


def _check_digests(store: "TokenStore") -> None:
    digests, facts = collect_digests(store.storage, store.manifest)
    for group in digests.keys() | store.manifest.digests.keys():
        if digests.get(group) != store.manifest.digests.get(group):
            raise StoreCorruptError(f"{store.path}/{group}: its checksums are not the manifest's; {REMEDY}")
    sums = (sum(f.token_nodes for f in facts), sum(f.token_edges for f in facts))
    if sums != (store.manifest.token_nodes, store.manifest.token_edges):
        raise StoreCorruptError(f"{store.path}/tokens: the blocks' counts do not add up to the manifest's; {REMEDY}")


def _check_graph(store: "TokenStore") -> None:
    """The graph's own rules, and that its fingerprint (labels and splits included) is the manifest's."""
    try:
        store.graph.check()
    except GraphError as error:
        raise StoreCorruptError(f"{store.path}/graph: {error}") from None
    if GraphFacts.of(store.graph) != store.manifest.graph:
        raise StoreCorruptError(f"{store.path}/graph is not the one whose fingerprint the manifest has; {REMEDY}")
    planned = plan_blocks(store.num_nodes, store.manifest.block_size, store.graph.graph_ptr)
    if not np.array_equal(planned, store.block_ptr):
        raise StoreCorruptError(f"{store.path}/tokens/index/block_ptr does not cut blocks as the manifest says")


def _check_ordering(store: "TokenStore", name: str) -> None:
    """Nodes stand by graph; along them ranks begin at 0 in each graph and rise by 0 or 1."""
    arrays, graph = store.ordering(name), store.graph
    permutation, ranks = arrays["permutation"], arrays["ranks"][arrays["permutation"]]
    starts = np.zeros(store.num_nodes, dtype=bool)
    if graph.graph_ptr is not None:
        borders = graph.graph_ptr[1:-1]
        starts[borders[borders < store.num_nodes]] = True
        graph_of = np.searchsorted(graph.graph_ptr, np.arange(store.num_nodes), side="right")
        if not np.array_equal(graph_of[permutation], graph_of):
            raise StoreCorruptError(f"{store.path}/orderings/{name}/permutation mixes nodes of several graphs")
    starts[:1] = True
    rise = ranks[1:] - ranks[:-1].astype(np.int64)
    if np.any(ranks[starts] != 0) or np.any((rise[~starts[1:]] < 0) | (rise[~starts[1:]] > 1)):
        raise StoreCorruptError(f"{store.path}/orderings/{name}/ranks do not rise along the permutation")


def _check_tokens(store: "TokenStore", on_progress: OnProgress) -> None:
    """Every token by the path a trainer reads it, then against the graph. Blocks are spread over all cores."""
    checker, view = TokenChecker(store), store.view()

    def check(number: int) -> None:
        view.gather(np.arange(store.block_ptr[number], store.block_ptr[number + 1]))
        checker.check(number)
        store.forget(number)

    pool = ThreadPoolExecutor(usable_cores())
    try:
        for _ in pool.map(check, range(store.manifest.blocks)):
            on_progress(1)
    finally:
        pool.shutdown(cancel_futures=True)


def _check_encoding(store: "TokenStore", name: str) -> None:
    for array, values in store.encoding(name).items():
        good = ~np.isinf(values) if array in ENCODINGS[name].may_be_nan else np.isfinite(values)
        if not good.all():
            raise StoreCorruptError(f"{store.path}/encodings/{name}/{array} holds NaN or infinity")
