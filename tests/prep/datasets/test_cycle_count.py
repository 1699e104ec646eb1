import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_prep.datasets.cycle_count import load_cycle_count
from tests.reference.cycles import count_cycles


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**64 - 1))
def test_targets_agree_with_slow_twin(seed):
    graph = load_cycle_count(DatasetOptions(graphs=4, seed=seed)).check()
    for g in range(4):
        start, stop = graph.graph_ptr[g], graph.graph_ptr[g + 1]
        rows = [
            set((graph.indices[graph.indptr[v] : graph.indptr[v + 1]] - start).tolist())
            for v in range(start, stop)
        ]
        wanted = [count_cycles(rows, length) / len(rows) for length in (3, 4)]
        assert np.allclose(graph.y[g], wanted, atol=1e-6)


def test_statistics_of_the_definition():
    graph = load_cycle_count(DatasetOptions(graphs=3000, seed=1)).check()
    sizes = np.diff(graph.graph_ptr)
    assert (sizes.min(), sizes.max()) == (16, 48)
    assert abs(graph.degrees.mean() - 4) < 0.05
    # Expected triangles: C(n, 3) p^3 with p = 4 / (n - 1).
    chance = 4 / (sizes - 1)
    triangles = sizes * (sizes - 1) * (sizes - 2) / 6 * chance**3
    assert abs((graph.y[:, 0] * sizes).mean() / triangles.mean() - 1) < 0.03
    assert np.bincount(graph.splits[0]).tolist() == [0, 1800, 600, 600]
    assert (graph.task.level, graph.task.kind, graph.task.classes) == ("graph", "regression", 2)


def test_refuses_no_graphs():
    with pytest.raises(DatasetError, match="--graphs 1 or more"):
        load_dataset("cycle-count", DatasetOptions(graphs=0))
