"""From importance scores to an ordering: ranks within each graph, and ties in a keyed random order."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, child_keys, root_key
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, IntArray


@dataclass(frozen=True)
class Ordering:
    """Nodes by graph, then by ascending importance."""

    permutation: IntArray
    """(n,) node ids, of the graph's id type; equal importance in random order."""
    ranks: IntArray
    """(n,) int32 dense rank 0, 1, 2, ... of each node's importance within its graph; equal importance, equal rank."""


def order_by_levels(graph: Graph, levels: Array, seed: int) -> Ordering:
    """The ordering by `levels`, (n,) non-negative integers below 2**32; equal levels are tied.

    A tie is broken by the draw (seed, ORDER_TIES, node), never by the node id itself: ids leak position.
    """
    n = graph.num_nodes
    key = levels.astype(np.uint64)
    if graph.graph_ptr is not None:
        graph_of = np.repeat(np.arange(graph.num_graphs, dtype=np.uint64), np.diff(graph.graph_ptr))
        key |= graph_of << np.uint64(32)
    shuffled = np.argsort(child_keys(root_key(seed, Purpose.ORDER_TIES), n), kind="stable")
    permutation = shuffled[np.argsort(key[shuffled], kind="stable")]
    ranks = np.empty(n, dtype=np.int32)
    _fill_ranks(key, permutation, ranks)
    return Ordering(permutation.astype(graph.indices.dtype), ranks)


def float_levels(scores: Array) -> Array:
    """Integers that rise with `scores`, (n,) non-negative float64, and are equal where those differ by rounding noise.

    A score is rounded to 20 binary digits, a relative step of 1e-6. Nodes with the same place in the structure get
    scores that differ by some 1e-15 (only the order of summation differs), so that splitting such a pair has a chance
    of about one in a billion; scores that truly differ by less than 1e-6 are not worth an order.
    """
    bits = np.ascontiguousarray(scores, dtype=np.float64).view(np.uint64)
    return (bits + np.uint64(1 << 31)) >> np.uint64(32)


@njit(cache=True, nogil=True)
def _fill_ranks(key, permutation, ranks):  # type: ignore[no-untyped-def]
    """Dense ranks along the permutation; the upper half of a key is the graph, where ranks begin again at 0."""
    rank = 0
    for i in range(permutation.size):
        if i > 0:
            now, before = key[permutation[i]], key[permutation[i - 1]]
            if now >> np.uint64(32) != before >> np.uint64(32):
                rank = 0
            elif now != before:
                rank += 1
        ranks[permutation[i]] = rank
