"""Checks every byte of a store, then everything its numbers must satisfy."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gmn_pipeline.errors import GraphError, StoreCorruptError
from gmn_pipeline.store.array_files import read_attributes
from gmn_pipeline.store.blocks import plan_blocks
from gmn_pipeline.store.manifest_file import collect_digests
from gmn_pipeline.store.schema import PARENTS, block_group, block_specs, fixed_groups

if TYPE_CHECKING:
    from gmn_pipeline.store.reader import TokenStore

OnProgress = Callable[[int, int], None]


def verify_store(store: "TokenStore", on_progress: OnProgress | None = None) -> None:
    """Raise StoreCorruptError naming the first array that is not as it was written, or whose values cannot be.

    Bytes first (checksums of all files, digests of all groups), then meaning: the graph's own checks, permutations, and
    every token through the same checked path a trainer reads it by.
    """
    from gmn_pipeline.store.byte_check import check_group_bytes

    for parent in PARENTS:
        if read_attributes(store.storage, parent):
            raise StoreCorruptError(f"{store.path}/{parent}/zarr.json was changed; restore the store or tokenize again")
    total = 2 * store.manifest.blocks + len(fixed_groups(store.manifest))
    for group, specs in fixed_groups(store.manifest).items():
        check_group_bytes(store.storage, group, specs, store.manifest.codec)
    for number in range(store.manifest.blocks):
        specs = block_specs(store.manifest, store.block_facts(number))
        check_group_bytes(store.storage, block_group(number), specs, store.manifest.codec)
    digests, facts = collect_digests(store.storage, store.manifest)
    for group, digest in store.manifest.digests.items():
        if digests.get(group) != digest:
            raise StoreCorruptError(f"{store.path}/{group}: its checksums are not the manifest's; it was replaced")
    sums = (sum(f.token_nodes for f in facts), sum(f.token_edges for f in facts))
    if sums != (store.manifest.token_nodes, store.manifest.token_edges):
        raise StoreCorruptError(f"{store.path}/tokens: the blocks' counts do not add up to the manifest's")
    planned = plan_blocks(store.num_nodes, store.manifest.block_size, store.graph.graph_ptr)
    if not np.array_equal(planned, store.block_ptr):
        raise StoreCorruptError(f"{store.path}/tokens/index/block_ptr does not cut blocks as the manifest says")
    try:
        store.graph.check()
    except GraphError as error:
        raise StoreCorruptError(f"{store.path}/graph: {error}") from None
    for name in store.manifest.orderings:
        store.ordering(name)
    for done, _ in enumerate(store.view().blocks(), total - store.manifest.blocks + 1):
        if on_progress is not None:
            on_progress(done, total)
