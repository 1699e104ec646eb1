"""Checks every byte of a store, then everything its numbers must satisfy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gmn_pipeline.errors import GraphError, StoreCorruptError
from gmn_pipeline.store.blocks import plan_blocks
from gmn_pipeline.store.group_files import CHECKSUMS, checksum, read_attributes
from gmn_pipeline.store.schema import block_name, fixed_groups
from gmn_pipeline.store.writer import PARENTS, collect_digests

if TYPE_CHECKING:
    from gmn_pipeline.store.reader import TokenStore

Progress = Callable[[int, int], None]


def verify_store(store: "TokenStore", on_progress: Progress | None = None) -> None:
    """Raise StoreCorruptError naming the first array that is not as it was written, or whose values cannot be.

    Bytes first (checksums of all files, digests of all groups), then meaning: the graph's own checks, permutations, and
    every token through the same checked path a trainer reads it by.
    """
    for parent in PARENTS:
        if read_attributes(store.path / parent):
            raise StoreCorruptError(f"{store.path}/{parent}/zarr.json was changed; restore the store or tokenize again")
    total = 2 * store.manifest.blocks + len(fixed_groups(store.manifest))
    done = 0
    for group in _groups(store):
        _check_group_bytes(store.path, group)
        done += 1
        if on_progress is not None:
            on_progress(done, total)
    digests, facts = collect_digests(store.path, store.manifest)
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
    for _ in store.view().blocks():
        done += 1
        if on_progress is not None:
            on_progress(done, total)


def _groups(store: "TokenStore") -> Iterator[str]:
    yield from fixed_groups(store.manifest)
    yield from (f"tokens/{block_name(number)}" for number in range(store.manifest.blocks))


def _check_group_bytes(root: Path, group: str) -> None:
    expected = read_attributes(root / group).get(CHECKSUMS)
    if not isinstance(expected, dict):
        raise StoreCorruptError(f"{root / group}/zarr.json carries no checksums; restore the store or tokenize again")
    for name, wanted in expected.items():
        folder = root / group / name
        try:
            found = checksum(folder)
        except OSError as error:
            raise StoreCorruptError(f"{folder}: {error.strerror}; restore the store or tokenize again") from None
        if found != wanted:
            raise StoreCorruptError(f"{folder} was changed: checksum {found[:12]}, written as {wanted[:12]}")
