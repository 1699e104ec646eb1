"""Order by PageRank: degree smoothed over the neighbourhood, with few ties. Costs some 45 passes over the edges."""

import numpy as np
from numba import njit

from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, FloatArray
from gmn_prep.encodings.random_walk.row_chunks import row_chunks, workers
from gmn_prep.orderings.tie_breaking import float_keys

DAMPING, TOLERANCE, MOST_STEPS = 0.85, 1e-10, 500


def pagerank_keys(graph: Graph, threads: int = 1) -> Array:
    """(n,) rounded PageRank, damping 0.85, each graph by itself."""
    return float_keys(pagerank(graph, threads))


def pagerank(graph: Graph, threads: int = 1) -> FloatArray:
    """(n,) float64 PageRank, summing to 1 in each graph, to 1e-10 in the sum of changes; a dead end jumps anywhere.

    Graphs are shared out over `threads`, none is split.
    """
    pointer = graph.graph_ptr if graph.graph_ptr is not None else np.array([0, graph.num_nodes])
    rank = np.empty(graph.num_nodes)
    # An undirected walk has real eigenvalues: then 45 Chebyshev steps do what 130 steps of power iteration do.
    radius = 0.0 if graph.directed else DAMPING
    arguments = (graph.indptr, graph.indices, pointer, radius, rank)
    with workers(threads) as team:
        team.run(lambda first, last: iterate_graphs(*arguments, first, last), row_chunks(pointer, parts=64))
    return rank


@njit(cache=True, nogil=True)
def iterate_graphs(indptr, indices, pointer, radius, rank, first, last):  # type: ignore[no-untyped-def]
    """Fill `rank` for graphs first .. last, one after another: a small one stays in the cache through all its steps.

    A step is x_t+1 = weight (F(x_t) - x_t-1) + x_t-1 with F the step of power iteration: Chebyshev's, with weights for
    eigenvalues within [-radius, radius]; radius 0 is power iteration. Nodes of equal structure are treated alike.
    """
    begin = pointer[first]
    total, before = np.zeros(pointer[last] - begin), np.zeros(pointer[last] - begin)
    for g in range(first, last):
        lo, hi = pointer[g], pointer[g + 1]
        rank[lo:hi] = 1.0 / max(hi - lo, 1)
        weight = 1.0
        for _ in range(MOST_STEPS):
            stuck = 0.0
            for u in range(lo, hi):
                degree = indptr[u + 1] - indptr[u]
                if degree == 0:
                    stuck += rank[u]
                    continue
                share = rank[u] / degree
                for slot in range(indptr[u], indptr[u + 1]):
                    total[indices[slot] - begin] += share
            change = 0.0
            for v in range(lo, hi):
                new = (1.0 - DAMPING + DAMPING * stuck) / (hi - lo) + DAMPING * total[v - begin]
                new = weight * (new - before[v - begin]) + before[v - begin]
                change += abs(new - rank[v])
                before[v - begin] = rank[v]
                rank[v] = new
                total[v - begin] = 0.0
            if change < TOLERANCE:
                break
            weight = 1.0 / (1.0 - radius**2 * (0.5 if weight == 1.0 else 0.25 * weight))
