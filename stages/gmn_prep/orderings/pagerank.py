"""Order by PageRank: degree smoothed over the neighbourhood, with few ties. Costs a hundred passes over the edges."""

import numpy as np
from numba import njit

from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, FloatArray
from gmn_prep.orderings.tie_breaking import float_levels

DAMPING, TOLERANCE, MOST_STEPS = 0.85, 1e-10, 500


def pagerank_levels(graph: Graph) -> Array:
    """(n,) rounded PageRank, damping 0.85, each graph by itself."""
    return float_levels(pagerank(graph))


def pagerank(graph: Graph) -> FloatArray:
    """(n,) float64 PageRank, summing to 1 in each graph, to 1e-10 in the sum of changes; a dead end jumps anywhere."""
    pointer = graph.graph_ptr if graph.graph_ptr is not None else np.array([0, graph.num_nodes])
    rank = np.empty(graph.num_nodes)
    iterate_graphs(graph.indptr, graph.indices, pointer, rank)
    return rank


@njit(cache=True, nogil=True)
def iterate_graphs(indptr, indices, pointer, rank):  # type: ignore[no-untyped-def]
    """Fill `rank` by power iteration, graph after graph: a small one stays in the cache through all its steps."""
    total = np.zeros(rank.size)
    for g in range(pointer.size - 1):
        lo, hi = pointer[g], pointer[g + 1]
        rank[lo:hi] = 1.0 / max(hi - lo, 1)
        for _ in range(MOST_STEPS):
            stuck = 0.0
            for u in range(lo, hi):
                degree = indptr[u + 1] - indptr[u]
                if degree == 0:
                    stuck += rank[u]
                    continue
                share = rank[u] / degree
                for slot in range(indptr[u], indptr[u + 1]):
                    total[indices[slot]] += share
            change = 0.0
            for v in range(lo, hi):
                new = (1.0 - DAMPING + DAMPING * stuck) / (hi - lo) + DAMPING * total[v]
                change += abs(new - rank[v])
                rank[v] = new
                total[v] = 0.0
            if change < TOLERANCE:
                break
