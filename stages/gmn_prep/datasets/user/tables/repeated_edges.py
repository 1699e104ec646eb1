"""Edges that a table lists more than once, with different features: one of them is kept, whatever the order of rows."""

from collections.abc import Sequence

import numpy as np

from gmn_pipeline.types import Array


def put_smallest_first(edges: Array, features: Array, names: Sequence[str]) -> tuple[Array, Array, int]:
    """Both with the rows of each repeated edge in the order of their features; `Graph.from_edges` keeps the first.

    edges: (E, 2), features: (E, F), names: of the F columns, which are compared by name: their order means nothing
    either. Also returns how many edges are listed with different features.
    """
    _, edge, counts = np.unique(edges[:, 0] * (edges.max(initial=0) + 1) + edges[:, 1], return_inverse=True,
                                return_counts=True)  # fmt: skip
    places = np.flatnonzero(counts[edge] > 1)
    if not places.size:
        return edges, features, 0
    by_name = features[places][:, np.argsort(np.array(names))]
    rows = places[np.lexsort((*by_name.T[::-1], edge[places]))]
    edges, features = edges.copy(), features.copy()
    edges[places], features[places] = edges[rows], features[rows]
    same_edge = edge[rows][1:] == edge[rows][:-1]
    differ = (features[places][1:] != features[places][:-1]).any(axis=1)
    return edges, features, np.unique(edge[rows][1:][same_edge & differ]).size
