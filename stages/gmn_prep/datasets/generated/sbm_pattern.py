"""PATTERN as Dwivedi et al. (2020) define it: find twenty planted nodes in a stochastic block model.

A graph has five communities of 5 to 34 nodes (the authors' code draws below 35), joined with probability 0.5
inside and 0.35 between, and a pattern of 20 nodes: one of a fixed list, each with its own inner edges
(probability 0.5) and features, joined to every other node with probability 0.5. Node features are one of
three categories, drawn evenly. Nodes are shuffled. The label is 1 in the pattern. Published: 14,000 graphs of
100 patterns, 10,000 to train on and 2,000 each for validation and test, every pattern equally often in each;
fewer than 700 graphs share fewer patterns. The score is the accuracy averaged over both classes, and the loss
weighs classes by rarity.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, bounded, child_key, key_path, unit_float
from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph, id_dtype
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import DatasetOptions

DEFAULT_GRAPHS = 14_000
PATTERNS = 100
COMMUNITIES, SMALLEST, LARGEST = 5, 5, 34
PATTERN_NODES = 20
CATEGORIES = 3
P_INSIDE, P_BETWEEN, P_PATTERN = 0.5, 0.35, 0.5
MOST_NODES = COMMUNITIES * LARGEST + PATTERN_NODES
GRAPH_STREAM, PATTERN_STREAM = 2, 3
# Children of a graph's key, and of a pattern's.
SIZES, EDGES, FEATURES, SHUFFLE = (np.uint64(i) for i in range(4))


def load_sbm_pattern(options: DatasetOptions) -> Graph:
    """`options.graphs` graphs for `options.seed`, as one disjoint union."""
    graphs = options.graph_count(DEFAULT_GRAPHS)
    patterns = min(PATTERNS, max(graphs // 7, 1))
    graph_key = key_path(options.seed, Purpose.GENERATE, GRAPH_STREAM)
    pattern_key = key_path(options.seed, Purpose.GENERATE, PATTERN_STREAM)

    sizes = np.empty((graphs, COMMUNITIES), dtype=np.int64)
    draw_sizes(graph_key, sizes)
    graph_ptr = np.zeros(graphs + 1, dtype=np.int64)
    np.cumsum(sizes.sum(axis=1) + PATTERN_NODES, out=graph_ptr[1:])
    n = int(graph_ptr[-1])

    indptr = np.zeros(n + 1, dtype=np.int64)
    x = np.empty((n, 1), dtype=np.int32)
    y = np.empty(n, dtype=np.int64)
    nothing = np.empty(0, dtype=id_dtype(n))
    # Drawn twice, first to count: a draw costs less than keeping the edges would.
    fill_graphs(graph_key, pattern_key, patterns, sizes, graph_ptr, indptr, nothing, x, y)
    np.cumsum(indptr, out=indptr)
    indices = np.empty(int(indptr[-1]), dtype=id_dtype(n))
    fill_graphs(graph_key, pattern_key, patterns, sizes, graph_ptr, indptr, indices, x, y)

    split_of_graph = np.full(graphs, TEST, dtype=np.uint8)
    split_of_graph[: round(graphs * 6 / 7)] = VAL
    split_of_graph[: round(graphs * 5 / 7)] = TRAIN
    return Graph(
        indptr,
        indices,
        x=x,
        y=y,
        splits=np.repeat(split_of_graph, np.diff(graph_ptr)),
        graph_ptr=graph_ptr,
        task=Task.of("node", "binary", 2, "weighted_accuracy", class_weighted=True),
        x_categories=(CATEGORIES,),
    )


@njit(cache=True, nogil=True)
def draw_sizes(graph_key, out):  # type: ignore[no-untyped-def]
    """Community sizes of every graph, (graphs, communities)."""
    for g in range(out.shape[0]):
        key = child_key(child_key(graph_key, np.uint64(g)), SIZES)
        for c in range(out.shape[1]):
            out[g, c] = SMALLEST + bounded(child_key(key, np.uint64(c)), np.uint64(LARGEST - SMALLEST + 1))


@njit(cache=True, nogil=True)
def fill_graphs(  # type: ignore[no-untyped-def]
    graph_key, pattern_key, patterns, sizes, graph_ptr, indptr, indices, x, y
):
    """Draw every graph: first, with no room in `indices`, its degrees, features and labels; then its slots.

    Degrees go to indptr[1:], to be summed up before the second call.
    Within a graph, a node's *role* is its number before shuffling: communities in order, then the pattern.
    """
    counting = indices.size == 0 and indptr[-1] == 0
    joined = np.empty((MOST_NODES, MOST_NODES), dtype=np.bool_)
    community = np.empty(MOST_NODES, dtype=np.int64)
    shuffle_keys = np.empty(MOST_NODES, dtype=np.uint64)
    for g in range(sizes.shape[0]):
        key = child_key(graph_key, np.uint64(g))
        own = child_key(pattern_key, np.uint64(g % patterns))
        start = graph_ptr[g]
        n = graph_ptr[g + 1] - start
        base = n - PATTERN_NODES
        role = 0
        for c in range(COMMUNITIES):
            for _ in range(sizes[g, c]):
                community[role] = c
                role += 1
        for v in range(n):
            shuffle_keys[v] = child_key(child_key(key, SHUFFLE), np.uint64(v))
        place = np.argsort(shuffle_keys[:n])  # role -> number after shuffling

        graph_edges, pattern_edges = child_key(key, EDGES), child_key(own, EDGES)
        for i in range(n):
            joined[place[i], place[i]] = False
            for j in range(i + 1, n):
                if i >= base:
                    bits = child_key(pattern_edges, np.uint64((i - base) * PATTERN_NODES + (j - base)))
                    chance = P_PATTERN
                else:
                    bits = child_key(graph_edges, np.uint64(i * MOST_NODES + j))
                    if j >= base:
                        chance = P_PATTERN
                    else:
                        chance = P_INSIDE if community[i] == community[j] else P_BETWEEN
                there = unit_float(bits) < chance
                joined[place[i], place[j]] = there
                joined[place[j], place[i]] = there

        if counting:
            for role in range(n):
                planted = role >= base
                source = child_key(own if planted else key, FEATURES)
                number = role - base if planted else role
                v = start + place[role]
                x[v, 0] = bounded(child_key(source, np.uint64(number)), np.uint64(CATEGORIES))
                y[v] = planted
        for a in range(n):
            slot = 0 if counting else indptr[start + a]
            for b in range(n):
                if joined[a, b]:
                    if not counting:
                        indices[slot] = start + b
                    slot += 1
            if counting:
                indptr[start + a + 1] = slot
