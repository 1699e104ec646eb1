"""Return probabilities against dense powers, and estimates against their own standard errors."""

import os
from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from gmn_pipeline import Graph
from gmn_pipeline.errors import ConfigError
from gmn_prep.encodings.random_walk import encoding as random_walk
from gmn_prep.encodings.random_walk.encoding import choose_random_walk_mode, random_walk_encoding
from gmn_prep.encodings.random_walk.return_sketch import PILOT_BLOCKS, return_sketch
from gmn_prep.encodings.random_walk.row_chunks import workers
from tests.reference.encodings import dense_return_probabilities, dense_return_sketch
from tests.strategies import graphs


@given(graphs(), st.integers(1, 9))
def test_exact_agrees_with_dense(graph: Graph, k: int) -> None:
    found = random_walk_encoding(graph, k, mode="exact")
    assert found.stderr is None
    assert found.values.dtype == np.float32
    np.testing.assert_allclose(found.values, dense_return_probabilities(graph, k), atol=1e-6)


@given(graphs(directed=False), st.integers(1, 9))
def test_estimates_of_small_neighbourhoods_are_exact(graph: Graph, k: int) -> None:
    found = random_walk_encoding(graph, k, mode="estimate")
    assert found.stderr is not None
    assert not found.stderr.any()
    np.testing.assert_allclose(found.values, dense_return_probabilities(graph, k), atol=1e-6)


@given(graphs(directed=False), st.integers(1, 9), st.integers(0, 2**40))
def test_sketch_agrees_with_dense(graph: Graph, k: int, seed: int) -> None:
    """With a target so loose that no node is advised against."""
    with workers(2) as team:
        found = return_sketch(graph.indptr, graph.indices, np.arange(graph.num_nodes), k, seed, 1.0, team)
    linked = graph.degrees > 0
    for mine, twin in zip(
        found, dense_return_sketch(graph, k, seed, range(PILOT_BLOCKS, 2 * PILOT_BLOCKS)), strict=True
    ):
        np.testing.assert_allclose(mine[linked], twin[linked], atol=2e-4)


def test_sketch_is_honest_and_serves_most_nodes() -> None:
    """Nodes share their signs, so that a whole column may be high or low: several seeds, each column on its own."""
    graph, exact = heavy_tailed()
    scores = []
    for seed in range(8):
        with workers(2) as team:
            values, errors = return_sketch(graph.indptr, graph.indices, np.arange(3000), 12, seed, 0.005, team)
        used = (errors[:, 4:] <= 0.005).all(1) & (graph.degrees > 0)
        assert used.mean() > 0.5
        drawn = used[:, None] & (errors > 1e-7)
        scores.append(np.where(drawn, (values - exact) / np.where(drawn, errors, 1.0), np.nan))
    z = np.stack(scores)[:, :, 4:]
    assert np.all(np.abs(np.sqrt(np.nanmean(z**2, (0, 1))) - 1) < 0.25)
    assert np.all(np.abs(np.nanmean(z, (0, 1))) < 0.4)


def test_isolated_nodes_and_dead_ends_stay() -> None:
    directed = Graph.from_edges(np.array([[0, 1], [1, 2]]), 4, directed=True)
    for mode in ("exact", "estimate"):
        values = random_walk_encoding(directed, 3, mode=mode).values
        assert np.array_equal(values, [[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1]])
        assert random_walk_encoding(Graph.from_edges(np.zeros((0, 2), int), 2), 2, mode=mode).values.all()


@cache
def scale_free() -> tuple[Graph, np.ndarray]:
    """Hubs, leaves on hubs, an isolated node; and the exact probabilities."""
    network = nx.barabasi_albert_graph(1500, 3, seed=1)
    edges = np.array([*network.edges, *((v % 7, 1500 + v) for v in range(300))])
    graph = Graph.from_edges(edges, 1801)
    return graph, random_walk_encoding(graph, 12, mode="exact").values


@cache
def directed_graph() -> tuple[Graph, np.ndarray]:
    edges = np.array(nx.gnp_random_graph(120, 0.03, seed=2, directed=True).edges)
    graph = Graph.from_edges(edges, 120, directed=True)
    return graph, random_walk_encoding(graph, 6, mode="exact").values


@pytest.mark.parametrize("case", [scale_free, directed_graph])
def test_standard_errors_are_honest(case) -> None:  # type: ignore[no-untyped-def]
    graph, exact = case()
    found = random_walk_encoding(graph, exact.shape[1], mode="estimate", target_stderr=0.005)
    assert found.stderr is not None
    assert found.stderr.max() <= 0.0055
    drawn = found.stderr > 0
    np.testing.assert_allclose(found.values[~drawn], exact[~drawn], atol=1e-6)
    z = (found.values - exact)[drawn] / found.stderr[drawn]
    assert drawn.sum() > 300
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3
    assert np.mean(np.abs(z) > 4) < 0.01


@cache
def heavy_tailed() -> tuple[Graph, np.ndarray]:
    """Few hubs of hundreds of neighbours, many nodes of two or three."""
    random = np.random.default_rng(1)
    weight = random.pareto(1.2, 3000) + 1
    edges = random.choice(3000, (12_000, 2), p=weight / weight.sum())
    graph = Graph.from_edges(edges, 3000)
    return graph, random_walk_encoding(graph, 12, mode="exact", threads=2).values


@cache
def citations() -> tuple[Graph, np.ndarray]:
    """The 3,000 papers of ogbn-arxiv nearest to its 21st hub."""
    root = os.environ.get("GMN_DATA_ROOT")
    file = Path(root) / "ogb" / "ogbn_arxiv" / "raw" / "edge.csv.gz" if root else None
    if file is None or not file.exists():
        pytest.skip("ogbn-arxiv is not under GMN_DATA_ROOT")
    whole = Graph.from_edges(np.loadtxt(file, delimiter=",", dtype=np.int64), 169_343)
    ones = np.ones(whole.num_slots, dtype=np.int8)
    matrix = csr_array((ones, whole.indices, whole.indptr), shape=(whole.num_nodes, whole.num_nodes))
    near = breadth_first_order(matrix, np.argsort(-whole.degrees)[20], return_predecessors=False)[:3000]
    edges = np.argwhere(np.asarray(matrix[near][:, near].todense()))
    graph = Graph.from_edges(edges, near.size)
    return graph, random_walk_encoding(graph, 12, mode="exact", threads=2).values


@pytest.mark.parametrize("case", [scale_free, heavy_tailed, citations])
def test_standard_errors_are_honest_at_every_power(case) -> None:  # type: ignore[no-untyped-def]
    """Also where only a few hubs are sampled, which a mean over all entries would hide."""
    graph, exact = case()
    runs = [random_walk_encoding(graph, 12, mode="estimate", seed=seed, threads=2) for seed in range(4)]
    for power in range(3, 13):
        z = []
        for run in runs:
            assert run.stderr is not None
            drawn = run.stderr[:, power - 1] > 0
            z.append((run.values - exact)[drawn, power - 1] / run.stderr[drawn, power - 1])
        scores = np.concatenate(z)
        assert scores.size == 0 or 0.3 < np.sqrt(np.mean(scores**2)) < 1.3, power


@pytest.mark.parametrize(("target", "bias"), [(0.05, 1e-7), (0.005, 3e-5)])
def test_estimates_are_unbiased(target: float, bias: float) -> None:
    """Strictly where no draw that counts is thrown away (the loose target); nearly so where a few are."""
    graph, exact = scale_free()
    runs = [
        random_walk_encoding(graph, 12, mode="estimate", seed=s, threads=2, target_stderr=target) for s in range(24)
    ]
    values = np.stack([run.values for run in runs]).astype(np.float64)
    error = np.sqrt(np.mean([np.square(run.stderr, dtype=np.float64) for run in runs], axis=0) / len(runs))
    z = (values.mean(axis=0) - exact)[error > 0] / error[error > 0]
    assert np.sqrt(np.mean(z**2)) < 1.1  # a bias would stand out sqrt(24) times as far as in one run
    for column in range(2, 12):  # the mean over all nodes, far sharper than any node's
        off = values[:, :, column].mean(axis=1) - exact[:, column].mean()
        assert abs(off.mean()) < 4 * off.std(ddof=1) / np.sqrt(len(runs)) + bias


def test_a_smaller_target_is_met() -> None:
    graph, exact = scale_free()
    found = random_walk_encoding(graph, 12, mode="estimate", target_stderr=0.001)
    assert found.stderr is not None
    assert found.stderr.max() <= 0.001
    assert np.abs(found.values - exact).max() < 0.01


@pytest.mark.parametrize("mode", ["exact", "estimate"])
@pytest.mark.parametrize("case", [scale_free, directed_graph])
def test_bytes_do_not_depend_on_threads(mode: str, case) -> None:  # type: ignore[no-untyped-def]
    graph, _ = case()
    one, two, three = (random_walk_encoding(graph, 8, mode=mode, threads=t) for t in (1, 2, 3))  # type: ignore[arg-type]
    for other in (two, three):
        assert one.values.tobytes() == other.values.tobytes()
        if one.stderr is not None and other.stderr is not None:
            assert one.stderr.tobytes() == other.stderr.tobytes()


def test_auto_weighs_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, exact = scale_free()
    assert choose_random_walk_mode(graph, 12) == "exact"
    assert np.array_equal(random_walk_encoding(graph, 12).values, exact)
    monkeypatch.setattr(random_walk, "EXACT_SLOTS", 1_000_000)
    assert choose_random_walk_mode(graph, 12) == "estimate"
    assert random_walk_encoding(graph, 12).stderr is not None
    # Small neighbourhoods in a large graph: the first bound is far off, counting rows is not.
    long_path = Graph.from_edges(np.stack([np.arange(4999), np.arange(1, 5000)], axis=1), 5000)
    assert choose_random_walk_mode(long_path, 12) == "exact"


def test_progress_rises_to_the_number_of_nodes() -> None:
    heard: list[tuple[int, int]] = []
    random_walk_encoding(scale_free()[0], 4, threads=2, on_progress=lambda done, total: heard.append((done, total)))
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert heard[-1] == (1801, 1801)


def test_bad_settings_are_refused() -> None:
    graph = Graph.from_edges(np.array([[0, 1]]), 2)
    with pytest.raises(ConfigError, match="did you mean 'estimate'"):
        random_walk_encoding(graph, 2, mode="estimat")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="at least 1"):
        random_walk_encoding(graph, 0)
    with pytest.raises(ConfigError, match="above 0"):
        random_walk_encoding(graph, 2, target_stderr=0.0)
