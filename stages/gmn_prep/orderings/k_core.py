"""Order by core number: the largest c such that the node survives when all nodes of fewer than c neighbours are peeled.

Few distinct values, hence long ties; robust to hubs of leaves, which degree ranks high. Costs one pass over the edges.
"""

import numpy as np
from numba import njit

from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array


def k_core_keys(graph: Graph, _threads: int = 1) -> Array:
    """(n,) core numbers of the simple undirected graph beneath: no directions, self-loops or repeats."""
    loops = bool(np.any(graph.slot_sources == graph.indices))
    if graph.directed or loops or not graph.is_simple:
        graph = Graph.from_edges(np.stack([graph.slot_sources, graph.indices], axis=1), graph.num_nodes)
    core = graph.degrees.copy()
    peel(graph.indptr, graph.indices, core)
    return core


@njit(cache=True, nogil=True)
def peel(indptr, indices, core):  # type: ignore[no-untyped-def]
    """Core numbers in place of degrees, in linear time: nodes sorted into bins by degree move down as others go
    (Batagelj & Zaversnik 2003). Graphs of a disjoint union do not touch, so one run serves all.
    """
    n = core.size
    most = 0
    for v in range(n):
        most = max(most, core[v])
    first = np.zeros(most + 2, np.int64)  # where each degree's bin begins in `order`
    for v in range(n):
        first[core[v] + 1] += 1
    for d in range(most + 1):
        first[d + 1] += first[d]
    order, place, fill = np.empty(n, np.int64), np.empty(n, np.int64), first.copy()
    for v in range(n):
        place[v] = fill[core[v]]
        order[place[v]] = v
        fill[core[v]] += 1
    for i in range(n):
        v = order[i]
        for slot in range(indptr[v], indptr[v + 1]):
            u = indices[slot]
            if core[u] <= core[v]:
                continue
            # Swap u with the head of its bin, then move the bin's border past it.
            head = max(first[core[u]], i + 1)
            w = order[head]
            order[place[u]], order[head] = w, u
            place[w], place[u] = place[u], head
            first[core[u]] = head + 1
            core[u] -= 1
