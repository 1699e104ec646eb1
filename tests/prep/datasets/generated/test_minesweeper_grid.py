import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_prep.datasets.generated.minesweeper_grid import grid_shape, load_minesweeper_grid
from tests.reference.minesweeper import minesweeper

PUBLISHED_FEATURE_COUNTS = [5000, 858, 1726, 1442, 677, 232, 65]
"""Nodes per one-hot column in the published file: hidden, then 0, 1, 2, 3, 4, five or more mines around."""


@settings(max_examples=25, deadline=None)
@given(nodes=st.integers(1, 70), seed=st.integers(0, 2**64 - 1))
def test_agrees_with_slow_twin(nodes, seed):
    graph = load_minesweeper_grid(DatasetOptions(nodes=nodes, seed=seed)).check()
    neighbours, features, labels = minesweeper(*grid_shape(nodes), seed)
    assert [row.tolist() for row in np.split(graph.indices, graph.indptr[1:-1])] == neighbours
    assert graph.x.tolist() == features
    assert graph.y.tolist() == labels


@given(nodes=st.integers(1, 10**9))
def test_grid_shape_is_near_square_and_near_the_count(nodes):
    rows, columns = grid_shape(nodes)
    assert 1 <= rows <= columns <= 2 * rows + 1
    assert abs(rows * columns - nodes) <= rows / 2


@pytest.mark.parametrize(
    ("nodes", "shape"), [(10_000, (100, 100)), (5_000_000, (2000, 2500)), (101, (10, 10)), (1, (1, 1))]
)
def test_grid_shape_examples(nodes, shape):
    assert grid_shape(nodes) == shape


@pytest.mark.parametrize("seed", range(3))
def test_looks_like_the_published_file(seed):
    graph = load_minesweeper_grid(DatasetOptions(seed=seed)).check()
    assert (graph.num_nodes, graph.num_edges) == (10_000, 39_402)
    assert np.bincount(graph.degrees).tolist() == [0, 0, 0, 4, 0, 392, 0, 0, 9604]
    assert graph.y.sum() == 2000
    counts = graph.x.sum(axis=0)
    assert counts[0] == 5000
    assert chi2_contingency([counts[1:], PUBLISHED_FEATURE_COUNTS[1:]]).pvalue > 1e-4
    # Mines are hidden no more often than other cells: 1012 of 2000 in the published file, sd 20.
    assert abs(graph.x[graph.y == 1, 0].sum() - 1000) < 100
    assert graph.splits.shape == (10, 10_000)
    for split in graph.splits:
        assert np.bincount(split, minlength=4).tolist() == [0, 5000, 2500, 2500]
        assert np.bincount(split[graph.y == 1], minlength=4).tolist() == [0, 1000, 500, 500]
    assert len({split.tobytes() for split in graph.splits}) == 10
    assert (graph.task.kind, graph.task.metric) == ("binary", "roc_auc")


def test_is_a_function_of_the_seed():
    one, same, other = (load_minesweeper_grid(DatasetOptions(nodes=400, seed=s)) for s in (1, 1, 2))
    assert all(np.array_equal(one.arrays()[k], same.arrays()[k]) for k in one.arrays())
    assert not np.array_equal(one.y, other.y)


def test_says_what_size_it_made():
    assert load_dataset("minesweeper-grid", DatasetOptions(nodes=101)).notices == (
        "minesweeper-grid has 100 nodes, the nearest possible size to 101",
    )
    assert load_dataset("minesweeper-grid", DatasetOptions(nodes=100)).notices == ()
    with pytest.raises(DatasetError, match="--nodes 1 or more"):
        load_dataset("minesweeper-grid", DatasetOptions(nodes=0))
