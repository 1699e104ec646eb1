"""Which nodes make up which block of tokens."""

import numpy as np

from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_pipeline.types import IntArray

BLOCK_BYTES = 32 << 20
"""Aim of the default block size: blocks large enough to write at the disk's speed, small enough to hold several."""

MIN_BLOCK, MAX_BLOCK = 1024, 1 << 18


def default_block_size(settings: TokenSettings) -> int:
    """Nodes per block, a power of two. Depends on the settings alone, never on the machine."""
    # Walks revisit nodes, so unions are smaller than 1 + M * level; two thirds is what sparse graphs show.
    unions = settings.s * sum(1 + settings.M * level * 2 // 3 for level in range(1, settings.m + 1))
    per_node = 6 * unions + settings.walk_entries + settings.sequence_length * (8 + 3 * settings.M)
    size = 1 << max(0, (BLOCK_BYTES // per_node).bit_length() - 1)
    return int(np.clip(size, MIN_BLOCK, MAX_BLOCK))


def plan_blocks(nodes: int, block_size: int, graph_ptr: IntArray | None) -> IntArray:
    """(blocks+1,) int64: block b holds nodes block_ptr[b] .. block_ptr[b+1].

    One graph is cut every `block_size` nodes. Of many graphs a block takes as many whole ones as fit into
    `block_size`; a graph that is larger than that is a block of its own.
    """
    if graph_ptr is None:
        return np.append(np.arange(0, nodes, block_size, dtype=np.int64), np.int64(nodes))
    borders = [0]
    while borders[-1] < nodes:
        start = borders[-1]
        reach = int(graph_ptr[np.searchsorted(graph_ptr, start + block_size, side="right") - 1])
        if reach <= start:  # the next graph alone is larger than a block
            reach = int(graph_ptr[np.searchsorted(graph_ptr, start, side="right")])
        borders.append(reach)
    return np.array(borders, dtype=np.int64)
