"""Batches of tokens joined into one, each row at its place."""

from collections.abc import Sequence

import numpy as np

from gmn_pipeline.store.reading.view import TokenBatch
from gmn_pipeline.types import Array, IntArray


def join_batches(ids: IntArray, parts: Sequence[tuple[IntArray, TokenBatch]]) -> TokenBatch:
    """The tokens of `ids` (B,), from batches and the rows 0..B-1 that each fills. Together they fill all."""
    first = parts[0][1]
    node_ptr = _join_pointers(ids, [(rows, part.node_ptr, part.length) for rows, part in parts])
    nodes = np.empty(node_ptr[-1], first.nodes.dtype)
    edge_ptr = edges = slots = walks = None
    if first.edges is not None:
        edge_ptr = _join_pointers(ids, [(rows, _there(part.edge_ptr), part.length) for rows, part in parts])
        edges = np.empty((edge_ptr[-1], 2), first.edges.dtype)
    if first.edge_slots is not None and edge_ptr is not None:
        slots = np.empty((edge_ptr[-1], first.edge_slots.shape[1]), first.edge_slots.dtype)
    if first.walks is not None:
        walks = np.empty((ids.size, first.walks.shape[1]), first.walks.dtype)
    for rows, part in parts:
        nodes[_places(rows, part.node_ptr, node_ptr, part.length)] = part.nodes
        if edge_ptr is not None and edges is not None:
            places = _places(rows, _there(part.edge_ptr), edge_ptr, part.length)
            edges[places] = _there(part.edges)
            if slots is not None:
                slots[places] = _there(part.edge_slots)
        if walks is not None:
            walks[rows] = _there(part.walks)
    return TokenBatch(first.settings, ids, nodes, node_ptr, edges, edge_ptr, slots, walks)


def _join_pointers(ids: IntArray, parts: Sequence[tuple[IntArray, IntArray, int]]) -> IntArray:
    length = parts[0][2]
    counts = np.zeros((ids.size, length), dtype=np.int64)
    for rows, pointer, _ in parts:
        counts[rows] = np.diff(pointer).reshape(-1, length)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])


def _places(rows: IntArray, own: IntArray, whole: IntArray, length: int) -> IntArray:
    """Where the entries of a part go: those of a row lie together in the part and in the whole."""
    begins = own[:-1:length]
    shift = whole[rows * length] - begins
    return np.arange(own[-1]) + np.repeat(shift, np.diff(np.append(begins, own[-1])))


def _there(array: Array | None) -> Array:
    assert array is not None, "parts were gathered alike"
    return array
