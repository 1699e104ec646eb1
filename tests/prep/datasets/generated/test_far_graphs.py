"""Long-range tasks: as their slow twins draw them, and with the answer farther away than a shallow network sees."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline import Graph
from gmn_prep.datasets import DatasetOptions, load_dataset
from tests.reference import far_graphs
from tests.reference.far_graphs import FarGraph

TASKS = {
    "ring-transfer": (far_graphs.ring_transfer, 16, 8),
    "tree-match": (far_graphs.tree_match, 15, 3),
    "distant-pairs": (far_graphs.distant_pairs, 30, 5),
}


def load(name: str, graphs: int, seed: int) -> Graph:
    return load_dataset(name, DatasetOptions(graphs=graphs, seed=seed)).graph


@pytest.mark.parametrize(("name", "twin", "n"), [(name, twin, n) for name, (twin, n, _) in TASKS.items()])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**31))
def test_graphs_are_those_of_the_slow_twin(name: str, twin: Callable[[int, int], FarGraph], n: int, seed: int) -> None:
    graph = load(name, 3, seed).check()
    assert graph.x is not None
    assert graph.y is not None
    assert graph.splits is not None
    for g in range(3):
        slow, first = twin(seed, g), g * n
        edges = {
            frozenset((v, int(u) - first))
            for v in range(n)
            for u in graph.indices[graph.indptr[first + v] : graph.indptr[first + v + 1]]
        }
        assert edges == slow.edges
        assert {v: tuple(graph.x[first + v]) for v in range(n)} == slow.x
        asked = [v for v in range(n) if graph.splits[0, first + v]]
        assert {v: graph.y[first + v] for v in asked} == slow.answers


@pytest.mark.parametrize(("name", "distance"), [(name, distance) for name, (_, _, distance) in TASKS.items()])
def test_what_lies_nearer_says_nothing_of_the_answer(name: str, distance: int) -> None:
    """Sources of the answer, found by what the task says, are no nearer than `distance`."""
    graph = load(name, 20, 1)
    assert graph.graph_ptr is not None
    assert graph.splits is not None
    assert graph.x is not None
    for g in range(20):
        first, last = graph.graph_ptr[g : g + 2]
        asked = [int(v) for v in range(first, last) if graph.splits[0, v]]
        hops = hops_from(graph, asked[0])
        if name == "ring-transfer":
            assert hops[first:last].max() == distance
            sources = [int(v) for v in range(first, last) if hops[v] == distance]
            assert len(sources) == 1
        elif name == "tree-match":
            sources = [int(v) for v in range(first, last) if graph.x[v, 1]]
        else:
            sources = asked[1:]
        assert min(hops[v] for v in sources) >= distance
        assert (hops[first:last] >= 0).all()  # connected


def hops_from(graph: Graph, start: int) -> np.ndarray:
    hops = np.full(graph.num_nodes, -1)
    hops[start], front = 0, [start]
    while front:
        reached = []
        for v in front:
            for u in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]:
                if hops[u] < 0:
                    hops[u] = hops[v] + 1
                    reached.append(int(u))
        front = reached
    return hops


@pytest.mark.parametrize("name", TASKS)
def test_parts_are_of_whole_graphs_and_answers_are_even(name: str) -> None:
    graph = load(name, 500, 3)
    assert graph.splits is not None
    assert graph.y is not None
    assert graph.task is not None
    assert graph.graph_ptr is not None
    parts = [set(graph.splits[0, a:b]) - {0} for a, b in zip(graph.graph_ptr, graph.graph_ptr[1:], strict=False)]
    assert {len(part) for part in parts} == {1}
    assert np.bincount([part.pop() for part in parts]).tolist() == [0, 300, 100, 100]
    shares = np.bincount(graph.y[graph.splits[0] > 0]) / (graph.splits[0] > 0).sum()
    assert len(shares) == graph.task.classes
    assert np.abs(shares * graph.task.classes - 1).max() < 0.4
