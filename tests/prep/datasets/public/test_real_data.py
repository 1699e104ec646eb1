"""The real datasets, where GMN_DATA_ROOT has them, linked into a scratch root."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from gmn_prep.datasets import DATASETS, DatasetOptions, load_dataset

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif("GMN_DATA_ROOT" not in os.environ, reason="GMN_DATA_ROOT is not set"),
]


def load(name, tmp_path):
    raw = DATASETS[name].raw
    there = Path(os.environ["GMN_DATA_ROOT"]).absolute()
    if raw.find(there) is None:
        pytest.skip(f"GMN_DATA_ROOT has no {name}")
    files = [raw.archive] if raw.missing(there) else [f"{raw.folder}/{file}" for file in raw.names(there)]
    for file in files:
        link = tmp_path / file
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(there / file)
    return load_dataset(name, DatasetOptions(data_root=tmp_path)).graph


def test_minesweeper(tmp_path):
    graph = load("minesweeper", tmp_path).check()
    assert (graph.num_nodes, graph.num_edges) == (10_000, 39_402)
    assert (graph.num_nodes, graph.num_slots) == (10_000, 2 * 39_402)
    for split in graph.splits:
        assert np.bincount(split).tolist() == [0, 5000, 2500, 2500]
    assert len(graph.splits) == 10
    again = load("minesweeper", tmp_path)
    assert all(np.array_equal(array, again.arrays()[name]) for name, array in graph.arrays().items())


@pytest.mark.parametrize(
    ("name", "edges", "features"),
    [("actor", 26_659, 932), ("chameleon-filtered", 8_854, 2_325), ("squirrel-filtered", 46_998, 2_089)],
)
def test_small_heterophilous(tmp_path, name, edges, features):
    graph = load(name, tmp_path).check()
    assert (graph.num_edges, graph.x.shape[1], len(graph.splits)) == (edges, features, 10)
    assert set(np.unique(graph.y)) == set(range(5))
    assert all(np.all(np.bincount(split, minlength=4)[1:] > 0) for split in graph.splits)


def test_generated_grid_has_the_real_one_s_statistics(tmp_path):
    real = load("minesweeper", tmp_path)
    made = load_dataset("minesweeper-grid", DatasetOptions()).graph
    assert np.array_equal(real.indptr, made.indptr)
    assert np.array_equal(real.indices, made.indices)
    assert real.y.sum() == made.y.sum()
    assert real.x[:, 0].sum() == made.x[:, 0].sum()
    # The real features follow the same rule from the real labels.
    around = np.add.reduceat(real.y[real.indices], real.indptr[:-1])
    column = np.where(real.x[:, 0] == 1, 0, 1 + np.minimum(around, 5))
    assert np.array_equal(real.x.argmax(axis=1), column)
    for label in (0, 1):
        counts = [graph.x[graph.y == label].sum(axis=0) for graph in (real, made)]
        assert chi2_contingency(counts).pvalue > 1e-4
    for real_split, made_split in zip(real.splits, made.splits, strict=True):
        table = [np.bincount(s[g.y == 1]).tolist() for s, g in ((real_split, real), (made_split, made))]
        assert table[0] == table[1]
    assert made.task == real.task


def test_ogbn_arxiv(tmp_path):
    graph = load("ogbn-arxiv", tmp_path).check()
    assert (graph.num_nodes, graph.num_slots) == (169_343, 2_315_598)
    assert graph.x.shape == (169_343, 128)
    assert np.bincount(graph.splits[0]).tolist() == [0, 90_941, 29_799, 48_603]
    assert (graph.y.min(), graph.y.max()) == (0, 39)
    again = load("ogbn-arxiv", tmp_path)
    assert all(np.array_equal(array, again.arrays()[name]) for name, array in graph.arrays().items())


def test_peptides_func(tmp_path):
    graph = load("peptides-func", tmp_path).check()
    assert graph.num_graphs == 15_535
    assert (graph.num_nodes, graph.num_slots) == (2_344_859, 4_773_974)
    assert np.bincount(graph.splits[0]).tolist() == [0, 10_873, 2331, 2331]
    assert graph.y.shape == (15_535, 10)
    assert set(np.unique(graph.y)) == {0, 1}
    assert graph.x.shape[1] == 9
    assert graph.edge_attr.shape[1] == 3
    again = load("peptides-func", tmp_path)
    assert all(np.array_equal(array, again.arrays()[name]) for name, array in graph.arrays().items())
