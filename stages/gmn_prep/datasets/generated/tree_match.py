"""Tree-neighbours-match (Alon & Yahav 2021): the root names a key, and the leaf that has this key holds the answer.

A graph is a complete binary tree of depth three. Its eight leaves have the keys 1 to 8 in random order, and a value
each, drawn evenly from 1 to 8. The root has one of the keys. Its label is the value of the leaf with that key; no other
node is asked. Features are a key and a value, 0 where a node has none. Nodes are shuffled. Fewer than three layers of
message passing see no leaf: their accuracy is an eighth. With three, all leaves must pass through the root's children.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, bounded, child_key, key_path
from gmn_pipeline.graph import Graph
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.generated.far_graphs import equal_graphs
from gmn_prep.datasets.generated.shuffled_rings import shuffled_names

DEFAULT_GRAPHS = 4_000
DEPTH = 3
LEAVES = 2**DEPTH
NODES = 2 * LEAVES - 1
STREAM = 7
SHUFFLE, KEYS, VALUES, ASKED = (np.uint64(i) for i in range(4))  # children of a graph's key


def load_tree_match(options: DatasetOptions) -> Graph:
    """`options.graphs` trees for `options.seed`."""
    graphs = options.graph_count(DEFAULT_GRAPHS)
    joined = np.zeros((graphs, NODES, NODES), dtype=np.bool_)
    x = np.zeros((graphs, NODES, 2), dtype=np.int64)
    y = np.zeros((graphs, NODES), dtype=np.int64)
    asked = np.zeros((graphs, NODES), dtype=np.bool_)
    fill_trees(key_path(options.seed, Purpose.GENERATE, STREAM), joined, x, y, asked)
    categories = (LEAVES + 1, LEAVES + 1)
    return equal_graphs(joined, x, y, asked, seed=options.seed, classes=LEAVES, x_categories=categories)


@njit(cache=True, nogil=True)
def fill_trees(key, joined, x, y, asked):  # type: ignore[no-untyped-def]
    """Node i of a tree, before shuffling, has the children 2i + 1 and 2i + 2; the leaves come last."""
    for g in range(joined.shape[0]):
        own = child_key(key, np.uint64(g))
        name = shuffled_names(child_key(own, SHUFFLE), NODES)
        leaf_key = shuffled_names(child_key(own, KEYS), LEAVES)
        wanted = bounded(child_key(own, ASKED), np.uint64(LEAVES))
        root = name[0]
        asked[g, root] = True
        x[g, root, 0] = wanted + 1
        for i in range(1, NODES):
            a, b = name[i], name[(i - 1) // 2]
            joined[g, a, b] = joined[g, b, a] = True
        for leaf in range(LEAVES):
            v = name[NODES - LEAVES + leaf]
            value = bounded(child_key(child_key(own, VALUES), np.uint64(leaf)), np.uint64(LEAVES))
            x[g, v, 0], x[g, v, 1] = leaf_key[leaf] + 1, value + 1
            if leaf_key[leaf] == wanted:
                y[g, root] = value
