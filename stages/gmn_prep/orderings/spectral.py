"""Order along the graph: from one end to the other, so that a scan of nodes reads a chain as a sequence.

The entries of the Fiedler vector (the eigenvector of the random walk with the second largest eigenvalue) rise along a
chain from end to end, and on a long, thin graph such as a molecule nearly do. On graphs without a long axis they say
little: many nodes have nearly the same entry. Costs what one Laplacian eigenvector costs.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, FloatArray
from gmn_prep.encodings.laplacian.encoding import laplacian_encoding

STEPS = 1 << 20
"""Places between the two ends of a component; nodes in one of them are tied."""


def spectral_keys(graph: Graph, threads: int = 1) -> Array:
    """(n,) ranks: components by size, in each the nodes from end to end. Components of one size are not told apart."""
    place, size = fiedler_places(graph, threads)
    steps = np.rint(place * STEPS).astype(np.int64)
    return np.unique(size * (STEPS + 1) + steps, return_inverse=True)[1]


def fiedler_places(graph: Graph, threads: int = 1) -> tuple[FloatArray, Array]:
    """(n,) float64 place of each node between the ends of its component, 0 to 1, and the size of the component.

    The Fiedler vector's sign is free: that of the entry farthest from 0 is taken as positive.
    """
    n = graph.num_nodes
    ones = np.ones(graph.num_slots, dtype=np.int8)
    count, component = connected_components(
        csr_array((ones, graph.indices, graph.indptr), shape=(n, n)), directed=False
    )
    sizes = np.bincount(component, minlength=count)
    if sizes.max(initial=0) < 2:
        return np.zeros(n), np.ones(n, np.int64)
    nodes = np.argsort(component, kind="stable")
    at = np.empty(n, np.int64)
    at[nodes] = np.arange(n)
    edges = np.stack([at[graph.slot_sources], at[graph.indices]], axis=1)
    parts = Graph.from_edges(edges, n, keep_self_loops=True, graph_ptr=np.concatenate([[0], np.cumsum(sizes)]))
    vector = laplacian_encoding(parts, 1, threads=threads).vectors[:, 0].astype(np.float64)
    entries = (vector / np.sqrt(np.maximum(np.diff(parts.indptr), 1)))[at]  # of the walk, not of the symmetric form
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, component, entries)
    np.maximum.at(high, component, entries)
    length = np.where(high > low, high - low, 1.0)
    return (entries - low[component]) / length[component], sizes[component]
