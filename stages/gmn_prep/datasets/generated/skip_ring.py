"""Graph classification by structure alone: how far do the skip links of a ring reach?

A graph is a ring of 24 to 48 nodes in which every node is also linked to the nodes 2, 3, 4 or 5 places
further on (its class), after the circular skip links of Murphy et al. (2019). All nodes have degree 4 and the
same feature, so message passing alone (1-WL) sees no difference; induced subgraphs, walks and encodings do:
skips of 2, 3, 4 and 5 close rings of 3, 4, 5 and 6. No two classes share a graph: C_n(1, r) and C_n(1, s) are
the same only if r*s is 1 more or less than a multiple of n, and r*s is at most 20 here. Nodes are shuffled;
classes are of equal size; the split is 60/20/20 within each class.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, child_key, key_path
from gmn_pipeline.graph import Graph, id_dtype
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.generated.shuffled_rings import DEGREE, draw_graph_ptr, shuffled_names
from gmn_prep.datasets.splits import draw_splits

DEFAULT_GRAPHS = 2_000
FIRST_SKIP, CLASSES = 2, 4
STREAM = 4
SHUFFLE = np.uint64(1)  # the child of a graph's key; its size is the first


def load_skip_ring(options: DatasetOptions) -> Graph:
    """`options.graphs` graphs for `options.seed`; graph g is of class g mod 4."""
    graphs = options.graph_count(DEFAULT_GRAPHS)
    key = key_path(options.seed, Purpose.GENERATE, STREAM)
    graph_ptr = draw_graph_ptr(key, graphs)
    n = int(graph_ptr[-1])
    indices = np.empty(DEGREE * n, dtype=id_dtype(n))
    fill_rings(key, graph_ptr, indices.reshape(n, DEGREE))
    y = np.arange(graphs) % CLASSES
    return Graph(
        np.arange(n + 1, dtype=np.int64) * DEGREE,
        indices,
        x=np.ones((n, 1), dtype=np.float32),
        y=y,
        splits=draw_splits(graphs, (0.6, 0.2), options.seed, strata=y),
        graph_ptr=graph_ptr,
        task=Task.of("graph", "multiclass", CLASSES, "accuracy"),
    )


@njit(cache=True, nogil=True)
def fill_rings(key, graph_ptr, neighbours):  # type: ignore[no-untyped-def]
    """Neighbours of every node, (n, 4), ascending."""
    for g in range(graph_ptr.size - 1):
        start = graph_ptr[g]
        n = graph_ptr[g + 1] - start
        skip = FIRST_SKIP + g % CLASSES
        name = shuffled_names(child_key(child_key(key, np.uint64(g)), SHUFFLE), n)
        for i in range(n):
            row = neighbours[start + name[i]]
            row[0] = start + name[(i + 1) % n]
            row[1] = start + name[(i - 1) % n]
            row[2] = start + name[(i + skip) % n]
            row[3] = start + name[(i - skip) % n]
            row.sort()
