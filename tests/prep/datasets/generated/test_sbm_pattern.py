import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_prep.datasets.generated.sbm_pattern import load_sbm_pattern
from tests.reference.sbm_pattern import sbm_pattern


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**64 - 1))
def test_agrees_with_slow_twin(seed):
    graph = load_sbm_pattern(DatasetOptions(graphs=15, seed=seed)).check()
    for g in (0, 14):
        start, stop = graph.graph_ptr[g], graph.graph_ptr[g + 1]
        slots, features, labels = sbm_pattern(seed, g, patterns=2)
        found = slice(graph.indptr[start], graph.indptr[stop])
        assert set(zip(graph.slot_sources[found] - start, graph.indices[found] - start, strict=True)) == slots
        assert graph.x[start:stop, 0].tolist() == features
        assert graph.y[start:stop].tolist() == labels


def test_statistics_of_the_definition():
    graph = load_sbm_pattern(DatasetOptions(graphs=1400, seed=3)).check()
    sizes = np.diff(graph.graph_ptr)
    assert sizes.min() >= 45
    assert sizes.max() <= 190
    assert abs(sizes.mean() - 117.5) < 3  # sd of the mean: 0.5
    planted = graph.y == 1
    assert planted.sum() == 20 * 1400
    # A pattern node is joined to each other node with probability 0.5.
    rate = graph.degrees[planted].sum() / (np.repeat(sizes, sizes)[planted] - 1).sum()
    assert abs(rate - 0.5) < 0.005
    assert abs(graph.num_nodes / (117.5 * 1400) - 1) < 0.03
    assert abs(graph.num_slots / (5891 * 1400) - 1) < 0.05
    assert np.allclose(np.bincount(graph.x[:, 0]) / graph.num_nodes, 1 / 3, atol=0.01)
    assert graph.x_categories == (3,)
    assert (graph.task.metric, graph.task.class_weighted) == ("weighted_accuracy", True)


@pytest.mark.parametrize(("graphs", "parts"), [(14, (10, 2, 2)), (140, (100, 20, 20)), (3, (2, 1, 0)), (1, (1, 0, 0))])
def test_splits_keep_graphs_whole(graphs, parts):
    graph = load_sbm_pattern(DatasetOptions(graphs=graphs))
    of_graph = [set(part) for part in np.split(graph.splits[0], graph.graph_ptr[1:-1])]
    assert all(len(codes) == 1 for codes in of_graph)
    assert tuple(sum(codes == {c} for codes in of_graph) for c in (1, 2, 3)) == parts


def test_refuses_no_graphs():
    with pytest.raises(DatasetError, match="--graphs 1 or more"):
        load_dataset("sbm-pattern", DatasetOptions(graphs=0))
