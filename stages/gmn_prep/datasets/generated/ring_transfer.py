"""Ring transfer: which colour has the node on the other side of the ring?

A graph is a ring of 16 nodes, each of one of four colours, drawn evenly. A node's label is the colour of the node
opposite, eight steps away. Nodes are shuffled. After Bodnar et al. (2021), who ask one node of each ring. Fewer than
eight layers of message passing see nothing of the answer: their accuracy is a quarter.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, bounded, child_key, key_path
from gmn_pipeline.graph import Graph
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.generated.far_graphs import equal_graphs
from gmn_prep.datasets.generated.shuffled_rings import shuffled_names

DEFAULT_GRAPHS = 500
NODES, COLOURS = 16, 4
DISTANCE = NODES // 2
STREAM = 6
SHUFFLE, COLOUR = np.uint64(0), np.uint64(1)  # children of a graph's key


def load_ring_transfer(options: DatasetOptions) -> Graph:
    """`options.graphs` rings for `options.seed`."""
    graphs = options.graph_count(DEFAULT_GRAPHS)
    joined = np.zeros((graphs, NODES, NODES), dtype=np.bool_)
    colours, y = np.empty((2, graphs, NODES), dtype=np.int64)
    fill_rings(key_path(options.seed, Purpose.GENERATE, STREAM), joined, colours, y)
    asked = np.ones((graphs, NODES), dtype=np.bool_)
    return equal_graphs(joined, colours, y, asked, seed=options.seed, classes=COLOURS, x_categories=(COLOURS,))


@njit(cache=True, nogil=True)
def fill_rings(key, joined, colours, y):  # type: ignore[no-untyped-def]
    """Neighbours, own colours and those opposite."""
    for g in range(joined.shape[0]):
        own = child_key(key, np.uint64(g))
        name = shuffled_names(child_key(own, SHUFFLE), NODES)
        for i in range(NODES):
            here, next_one, opposite = name[i], name[(i + 1) % NODES], name[(i + DISTANCE) % NODES]
            joined[g, here, next_one] = joined[g, next_one, here] = True
            colours[g, here] = bounded(child_key(child_key(own, COLOUR), np.uint64(i)), np.uint64(COLOURS))
            y[g, opposite] = colours[g, here]
