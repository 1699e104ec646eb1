"""From importance scores to an ordering: ranks within each graph, and ties in a keyed random order."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, child_key, root_key
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, IntArray

NODES_AT_A_TIME = 1 << 22


@dataclass(frozen=True)
class Ordering:
    """Nodes by graph, then by ascending importance."""

    permutation: IntArray
    """(n,) node ids, of the graph's id type; equal importance in random order."""
    ranks: IntArray
    """(n,) of the same type: dense rank 0, 1, 2, ... of importance within a graph; equal importance, equal rank."""


def order_by_keys(graph: Graph, keys: Array, seed: int) -> Ordering:
    """The ordering by `keys`, (n,) non-negative integers below 2**32; equal keys are tied.

    A tie is broken by the draw (seed, ORDER_TIES, node), never by the node id itself: ids leak position.
    """
    key = keys if graph.graph_ptr is None else _keys_by_graph(graph.graph_ptr, keys)
    draws = root_key(seed, Purpose.ORDER_TIES)
    permutation = np.empty(graph.num_nodes, graph.indices.dtype)
    at = 0
    for low, high in _bands(key):
        nodes = permutation[at:]
        count = _list_band(key, key.dtype.type(low), key.dtype.type(high), nodes)
        ties = np.empty(count, np.uint64)
        _fill_ties(draws, nodes, ties)
        nodes[:count] = nodes[:count][np.lexsort((ties, key[nodes[:count]]))]
        at += count
    ranks = np.empty(graph.num_nodes, graph.indices.dtype)
    _fill_ranks(key, permutation, ranks)
    return Ordering(permutation, ranks)


def _keys_by_graph(graph_ptr: IntArray, keys: Array) -> Array:
    """(n,) uint64: a node's graph above 32 bits of its key."""
    graph_of = np.repeat(np.arange(graph_ptr.size - 1, dtype=np.uint64), np.diff(graph_ptr))
    return keys.astype(np.uint64) | graph_of << np.uint64(32)


def _bands(key: Array) -> list[tuple[int, int]]:
    """Ranges of keys, ascending, that hold few nodes each unless more have one key: sorted in turn they need little."""
    if key.size <= NODES_AT_A_TIME:
        return [(int(key.min(initial=0)), int(key.max(initial=0)))]
    sample = np.sort(key[:: max(1, key.size // (1 << 20))])
    cuts = np.unique(sample[:: max(1, sample.size * NODES_AT_A_TIME // (4 * key.size))])
    low = [int(key.min()), *(int(cut) + 1 for cut in cuts[cuts < key.max()])]
    return list(zip(low, [*(value - 1 for value in low[1:]), int(key.max())], strict=True))


def float_keys(scores: Array) -> Array:
    """Integers that rise with `scores`, (n,) non-negative float64, and are equal where those differ by rounding noise.

    A score is rounded to 20 binary digits, a relative step of 1e-6. Nodes with the same place in the structure get
    scores that differ by some 1e-15 (only the order of summation differs), so that splitting such a pair has a chance
    of about one in a billion; scores that truly differ by less than 1e-6 are not worth an order.
    """
    bits = np.ascontiguousarray(scores, dtype=np.float64).view(np.uint64)
    return (bits + np.uint64(1 << 31)) >> np.uint64(32)


@njit(cache=True, nogil=True)
def _list_band(key, low, high, nodes):  # type: ignore[no-untyped-def]
    """The nodes with keys low .. high, ascending, at the beginning of `nodes`; returns how many."""
    count = 0
    for node in range(key.size):
        if low <= key[node] <= high:
            nodes[count] = node
            count += 1
    return count


@njit(cache=True, nogil=True)
def _fill_ties(draws, nodes, ties):  # type: ignore[no-untyped-def]
    for i in range(ties.size):
        ties[i] = child_key(draws, np.uint64(nodes[i]))


@njit(cache=True, nogil=True)
def _fill_ranks(key, permutation, ranks):  # type: ignore[no-untyped-def]
    """Dense ranks along the permutation; the upper half of a key is the graph, where ranks begin again at 0."""
    rank = 0
    for i in range(permutation.size):
        if i > 0:
            now, before = np.uint64(key[permutation[i]]), np.uint64(key[permutation[i - 1]])
            if now >> np.uint64(32) != before >> np.uint64(32):
                rank = 0
            elif now != before:
                rank += 1
        ranks[permutation[i]] = rank
