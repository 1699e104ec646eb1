"""Order by eigenvector centrality: a node is important if its neighbours are.

It gathers on the densest part of a graph, so that far nodes differ by orders of magnitude. Costs some hundred passes
over the edges, up to 1,000 where the two largest eigenvalues lie close (long, thin graphs).
"""

import numpy as np
from numba import njit
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, FloatArray
from gmn_prep.encodings.random_walk.row_chunks import row_chunks, workers
from gmn_prep.orderings.tie_breaking import float_keys

TOLERANCE, CYCLE, MOST_CYCLES = 1e-8, 50, 20


def eigenvector_keys(graph: Graph, threads: int = 1) -> Array:
    """(n,) rounded eigenvector centrality."""
    return float_keys(eigenvector_centrality(graph, threads))


def eigenvector_centrality(graph: Graph, threads: int = 1) -> FloatArray:
    """(n,) float64: in each connected component the leading eigenvector of A, mean square 1, times its eigenvalue.

    By component, since in the whole all but one component would be 0; times the eigenvalue, so that a denser component
    ranks higher and an isolated node has 0. A directed graph is taken as undirected. Power iteration with momentum from
    equal entries: every step treats nodes of equal structure alike, so they stay equal, converged or not. It ends when
    the entries change by 1e-8 on average, or after 1,000 steps. Components are shared out over `threads`.
    """
    if graph.directed:
        edges = np.stack([graph.slot_sources, graph.indices], axis=1)
        graph = Graph.from_edges(edges, graph.num_nodes, keep_self_loops=True)
    n = graph.num_nodes
    ones = np.ones(graph.num_slots, dtype=np.int8)
    matrix = csr_array((ones, graph.indices, graph.indptr), shape=(n, n))
    count, component = connected_components(matrix, directed=False)
    nodes = np.argsort(component, kind="stable")
    pointer = np.concatenate([[0], np.cumsum(np.bincount(component, minlength=count))])
    score, new, previous = np.empty(n), np.empty(n), np.empty(n)
    arguments = (graph.indptr, graph.indices, nodes, pointer, score, new, previous)
    with workers(threads) as team:
        team.run(lambda first, last: iterate_components(*arguments, first, last), row_chunks(pointer, parts=64))
    return score


@njit(cache=True, nogil=True)
def iterate_components(indptr, indices, nodes, pointer, score, new, previous, first, last):  # type: ignore[no-untyped-def]
    """Fill `score` for components first .. last; component c is nodes[pointer[c] .. pointer[c+1]].

    x_t+1 = (A + I) x_t - momentum x_t-1, with the momentum a little below (largest eigenvalue / 2)^2, estimated anew
    every CYCLE steps: plain power iteration is far from converged on long, thin graphs after 1,000 steps.
    """
    for c in range(first, last):
        members = nodes[pointer[c] : pointer[c + 1]]
        for v in members:
            score[v] = 1.0
        momentum, growth, change = 0.0, 1.0, 1.0
        for _ in range(MOST_CYCLES):
            for v in members:
                previous[v] = 0.0
            for _ in range(CYCLE):
                growth, change = _step(indptr, indices, members, momentum, score, previous, new)
                if change < TOLERANCE * members.size:
                    break
            if change < TOLERANCE * members.size:
                break
            momentum = (0.4995 * (growth + momentum / growth)) ** 2
        growth, _ = _step(indptr, indices, members, 0.0, score, previous, new)
        for v in members:
            score[v] = abs(score[v]) * max(growth - 1.0, 0.0)


@njit(cache=True, nogil=True)
def _step(indptr, indices, members, momentum, x, previous, new):  # type: ignore[no-untyped-def]
    """One step, scaled to mean square 1; x and previous move on. Returns the scale and the sum of changes."""
    square = 0.0
    for v in members:
        total = x[v] - momentum * previous[v]
        for slot in range(indptr[v], indptr[v + 1]):
            total += x[indices[slot]]
        new[v] = total
        square += total * total
    growth = np.sqrt(square / members.size)
    shrink, change = 1.0 / growth, 0.0
    for v in members:
        value = new[v] * shrink
        change += abs(value - x[v])
        previous[v] = x[v] * shrink
        x[v] = value
    return growth, change
