"""Distant pairs: two marked nodes at the ends of a chain of communities; each is asked for the other's colour.

A graph is a stochastic block model of six communities of five nodes in a row: nodes are joined with probability 0.5
inside a community and 0.1 between neighbouring ones. A path inside each community and one edge between neighbouring
ones are always there, so that a graph is connected. Each node has one of four colours, drawn evenly. One node of the
first community and one of the last are marked; they lie at least five steps apart. A marked node's label is the colour
of the other; no other node is asked. Nodes are shuffled. Fewer than five layers of message passing see nothing of the
answer: their accuracy is a quarter.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, bounded, child_key, key_path, unit_float
from gmn_pipeline.graph import Graph
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.generated.far_graphs import equal_graphs
from gmn_prep.datasets.generated.shuffled_rings import shuffled_names

DEFAULT_GRAPHS = 2_000
COMMUNITIES, SIZE = 6, 5
NODES = COMMUNITIES * SIZE
DISTANCE = COMMUNITIES - 1
COLOURS = 4
P_INSIDE, P_BETWEEN = 0.5, 0.1
STREAM = 8
SHUFFLE, EDGES, BRIDGES, COLOUR, MARKS = (np.uint64(i) for i in range(5))  # children of a graph's key


def load_distant_pairs(options: DatasetOptions) -> Graph:
    """`options.graphs` graphs for `options.seed`."""
    graphs = options.graph_count(DEFAULT_GRAPHS)
    joined = np.zeros((graphs, NODES, NODES), dtype=np.bool_)
    x = np.zeros((graphs, NODES, 2), dtype=np.int64)
    y = np.zeros((graphs, NODES), dtype=np.int64)
    fill_pairs(key_path(options.seed, Purpose.GENERATE, STREAM), joined, x, y)
    return equal_graphs(joined, x, y, x[..., 1] == 1, seed=options.seed, classes=COLOURS, x_categories=(COLOURS, 2))


@njit(cache=True, nogil=True)
def fill_pairs(key, joined, x, y):  # type: ignore[no-untyped-def]
    """Colour and mark of every node, and at the marked ones the other's colour. Communities are shuffled last."""
    for g in range(joined.shape[0]):
        own = child_key(key, np.uint64(g))
        name = shuffled_names(child_key(own, SHUFFLE), NODES)
        for i in range(NODES):
            x[g, name[i], 0] = bounded(child_key(child_key(own, COLOUR), np.uint64(i)), np.uint64(COLOURS))
            for j in range(i + 1, min((i // SIZE + 2) * SIZE, NODES)):
                inside = i // SIZE == j // SIZE
                chance = P_INSIDE if inside else P_BETWEEN
                drawn = unit_float(child_key(child_key(own, EDGES), np.uint64(i * NODES + j))) < chance
                if drawn or (inside and j == i + 1):
                    joined[g, name[i], name[j]] = joined[g, name[j], name[i]] = True
        for c in range(COMMUNITIES - 1):
            bridge = child_key(child_key(own, BRIDGES), np.uint64(c))
            a = name[c * SIZE + bounded(child_key(bridge, np.uint64(0)), np.uint64(SIZE))]
            b = name[(c + 1) * SIZE + bounded(child_key(bridge, np.uint64(1)), np.uint64(SIZE))]
            joined[g, a, b] = joined[g, b, a] = True
        marks = child_key(own, MARKS)
        first = name[bounded(child_key(marks, np.uint64(0)), np.uint64(SIZE))]
        last = name[NODES - SIZE + bounded(child_key(marks, np.uint64(1)), np.uint64(SIZE))]
        x[g, first, 1] = x[g, last, 1] = 1
        y[g, first], y[g, last] = x[g, last, 0], x[g, first, 0]
