import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_prep.datasets.generated.cycle_count import load_cycle_count
from tests.reference.cycles import count_cycles, swapped_ring


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**64 - 1))
def test_agrees_with_slow_twin(seed):
    graph = load_cycle_count(DatasetOptions(graphs=3, seed=seed)).check()
    for g in range(3):
        rows = swapped_ring(seed, g)
        nodes = range(graph.graph_ptr[g], graph.graph_ptr[g + 1])
        assert [set((graph.indices[4 * v : 4 * v + 4] - nodes.start).tolist()) for v in nodes] == rows
        wanted = [count_cycles(rows, length) / len(rows) for length in (3, 4)]
        assert np.allclose(graph.y[g], wanted, atol=1e-6)


def test_statistics_of_the_definition():
    graph = load_cycle_count(DatasetOptions(graphs=3000, seed=1)).check()
    sizes = np.diff(graph.graph_ptr)
    assert (sizes.min(), sizes.max()) == (24, 48)
    assert graph.is_simple
    assert set(graph.degrees) == {4}
    assert not np.any(graph.slot_sources == graph.indices)
    # From the untouched ring, one triangle and one square per node, to what random 4-regular graphs have.
    assert graph.y.max(axis=0)[0] == 1
    assert graph.y.min(axis=0)[0] < 0.05
    assert np.all(graph.y.std(axis=0) > 0.1)
    assert abs(np.corrcoef(sizes, graph.y[:, 0])[0, 1]) < 0.2  # the size does not give it away
    assert np.bincount(graph.splits[0]).tolist() == [0, 1800, 600, 600]
    assert (graph.task.item, graph.task.kind, graph.task.classes) == ("graph", "regression", 2)


def test_ids_do_not_tell_the_place_on_the_ring():
    graph = load_cycle_count(DatasetOptions(graphs=500))
    linked = np.mean([v + 1 in graph.indices[4 * v : 4 * v + 4] for v in range(graph.num_nodes - 1)])
    assert linked < 0.2


def test_refuses_no_graphs():
    with pytest.raises(DatasetError, match="--graphs 1 or more"):
        load_dataset("cycle-count", DatasetOptions(graphs=0))
