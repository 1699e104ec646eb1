"""Graph regression by structure alone: how many triangles and squares does a random graph have per node?

A graph has 16 to 48 nodes and each pair is joined with the probability that gives a mean degree of 4
(Erdős–Rényi). The two targets are its numbers of cycles of length 3 and of length 4, each divided by the
number of nodes. Degrees tell little of them: the expected counts, 10.7 and 32, hardly depend on n. All nodes
have the same feature. The split is a random 60/20/20; the score is the mean absolute error.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, bounded, child_key, key_path, unit_float
from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph, id_dtype
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.splits import draw_splits

DEFAULT_GRAPHS = 5_000
SMALLEST, LARGEST = 16, 48
MEAN_DEGREE = 4.0
STREAM = 5
SIZE, EDGES = np.uint64(0), np.uint64(1)


def count_cycle_count(options: DatasetOptions) -> tuple[int, int]:
    """(nodes, slots) as expected on average."""
    nodes = _graphs(options) * (SMALLEST + LARGEST) // 2
    return nodes, round(MEAN_DEGREE * nodes)


def load_cycle_count(options: DatasetOptions) -> Graph:
    """`options.graphs` graphs for `options.seed`."""
    graphs = _graphs(options)
    key = key_path(options.seed, Purpose.GENERATE, STREAM)
    graph_ptr = np.zeros(graphs + 1, dtype=np.int64)
    draw_sizes(key, graph_ptr[1:])
    np.cumsum(graph_ptr, out=graph_ptr)
    n = int(graph_ptr[-1])
    joined = np.zeros((n, LARGEST), dtype=np.bool_)
    draw_edges(key, graph_ptr, joined)
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(joined.sum(axis=1), out=indptr[1:])
    node, neighbour = np.nonzero(joined)
    indices = (np.repeat(graph_ptr[:-1], np.diff(graph_ptr))[node] + neighbour).astype(id_dtype(n))
    y = np.empty((graphs, 2), dtype=np.float32)
    count_cycles(graph_ptr, joined, y)
    return Graph(
        indptr,
        indices,
        x=np.ones((n, 1), dtype=np.float32),
        y=y,
        splits=draw_splits(graphs, (0.6, 0.2), options.seed),
        graph_ptr=graph_ptr,
        task=Task.of("graph", "regression", 2, "mae"),
    )


def _graphs(options: DatasetOptions) -> int:
    graphs = DEFAULT_GRAPHS if options.graphs is None else options.graphs
    if graphs < 1:
        raise DatasetError(f"cycle-count cannot have {graphs} graphs; give --graphs 1 or more")
    return graphs


@njit(cache=True, nogil=True)
def draw_sizes(key, out):  # type: ignore[no-untyped-def]
    for g in range(out.size):
        bits = child_key(child_key(key, np.uint64(g)), SIZE)
        out[g] = SMALLEST + bounded(bits, np.uint64(LARGEST - SMALLEST + 1))


@njit(cache=True, nogil=True)
def draw_edges(key, graph_ptr, joined):  # type: ignore[no-untyped-def]
    """Whether each node, (n, LARGEST), is joined to each node of its graph."""
    for g in range(graph_ptr.size - 1):
        start = graph_ptr[g]
        n = graph_ptr[g + 1] - start
        chance = MEAN_DEGREE / (n - 1)
        edge_key = child_key(child_key(key, np.uint64(g)), EDGES)
        for i in range(n):
            for j in range(i + 1, n):
                there = unit_float(child_key(edge_key, np.uint64(i * LARGEST + j))) < chance
                joined[start + i, j] = there
                joined[start + j, i] = there


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
