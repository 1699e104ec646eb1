"""Graph regression by structure alone: how many triangles and squares does a graph have per node?

A graph starts as a ring of 24 to 48 nodes, each linked to the two next to it on either side. Then a number of
times, drawn evenly from 0 to two per node, two edges drawn at random swap ends, a-b and c-d becoming a-d and
c-b, unless that would make a loop or a double edge (Maslov & Sneppen 2002). Nodes are shuffled. The two
targets are the numbers of cycles of length 3 and of length 4, each divided by the number of nodes: 1 with no
swap, and fewer with each. All nodes have degree 4 and the same feature, so message passing alone (1-WL) sees
no difference; the number of nodes explains 2% and 11% of the variance. The split is a random 60/20/20; the
score is the mean absolute error.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, bounded, child_key, key_path
from gmn_pipeline.graph import Graph, id_dtype
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.generated.shuffled_rings import DEGREE, LARGEST, draw_graph_ptr, shuffled_names
from gmn_prep.datasets.splits import draw_splits

DEFAULT_GRAPHS = 5_000
MOST_SWAPS = 2
"""Per node."""
STREAM = 5
SWAPS, SHUFFLE = np.uint64(1), np.uint64(2)  # children of a graph's key; its size is the first


def load_cycle_count(options: DatasetOptions) -> Graph:
    """`options.graphs` graphs for `options.seed`."""
    graphs = options.graph_count(DEFAULT_GRAPHS)
    key = key_path(options.seed, Purpose.GENERATE, STREAM)
    graph_ptr = draw_graph_ptr(key, graphs)
    n = int(graph_ptr[-1])
    joined = np.zeros((n, LARGEST), dtype=np.bool_)
    draw_graphs(key, graph_ptr, joined)
    node, neighbour = np.nonzero(joined)
    indices = (np.repeat(graph_ptr[:-1], np.diff(graph_ptr))[node] + neighbour).astype(id_dtype(n))
    y = np.empty((graphs, 2), dtype=np.float32)
    count_cycles(graph_ptr, joined, y)
    return Graph(
        np.arange(n + 1, dtype=np.int64) * DEGREE,
        indices,
        x=np.ones((n, 1), dtype=np.float32),
        y=y,
        splits=draw_splits(graphs, (0.6, 0.2), options.seed),
        graph_ptr=graph_ptr,
        task=Task.of("graph", "regression", 2, "mae"),
    )


@njit(cache=True, nogil=True)
def draw_graphs(key, graph_ptr, joined):  # type: ignore[no-untyped-def]
    """Whether each node, (n, LARGEST), is joined to each node of its graph."""
    ends = np.empty((2 * LARGEST, 2), dtype=np.int64)
    for g in range(graph_ptr.size - 1):
        start = graph_ptr[g]
        n = graph_ptr[g + 1] - start
        own = child_key(key, np.uint64(g))
        name = shuffled_names(child_key(own, SHUFFLE), n)
        rows = joined[start : start + n]
        for i in range(n):
            for step in range(2):
                a, b = name[i], name[(i + step + 1) % n]
                ends[2 * i + step, 0], ends[2 * i + step, 1] = a, b
                rows[a, b] = rows[b, a] = True

        swap_key = child_key(own, SWAPS)
        swaps = bounded(child_key(swap_key, np.uint64(0)), np.uint64(MOST_SWAPS * n + 1))
        for swap in range(swaps):
            draw = child_key(swap_key, np.uint64(swap + 1))
            one = bounded(child_key(draw, np.uint64(0)), np.uint64(2 * n))
            other = bounded(child_key(draw, np.uint64(1)), np.uint64(2 * n))
            turned = bounded(child_key(draw, np.uint64(2)), np.uint64(2))
            a, b = ends[one]
            c, d = ends[other, turned], ends[other, 1 - turned]
            # One edge drawn twice fails here too: a-d or c-b is then a loop, or the edge itself.
            if a == d or c == b or rows[a, d] or rows[c, b]:
                continue
            rows[a, b] = rows[b, a] = rows[c, d] = rows[d, c] = False
            rows[a, d] = rows[d, a] = rows[c, b] = rows[b, c] = True
            ends[one, 1] = d
            ends[other, turned], ends[other, 1 - turned] = c, b


@njit(cache=True, nogil=True)
def count_cycles(graph_ptr, joined, out):  # type: ignore[no-untyped-def]
    """Triangles and squares per node of each graph, (graphs, 2).

    Two nodes with c common neighbours close c triangles if joined (each triangle is seen from its 3 sides)
    and c(c-1)/2 squares (each square is seen from its 2 diagonals).
    """
    for g in range(graph_ptr.size - 1):
        start = graph_ptr[g]
        n = graph_ptr[g + 1] - start
        triangles = squares = 0
        for i in range(n):
            for j in range(i + 1, n):
                common = 0
                for k in range(n):
                    common += joined[start + i, k] & joined[start + j, k]
                if joined[start + i, j]:
                    triangles += common
                squares += common * (common - 1) // 2
        out[g, 0] = triangles / (3 * n)
        out[g, 1] = squares / (2 * n)
