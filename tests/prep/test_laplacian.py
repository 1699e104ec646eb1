"""Laplacian encodings against dense eigenvectors."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmn_pipeline import Graph
from gmn_pipeline.errors import ConfigError
from gmn_prep.encodings.laplacian import chebyshev_krylov
from gmn_prep.encodings.laplacian.encoding import LaplacianEncoding, laplacian_encoding
from gmn_prep.encodings.laplacian.factored_laplacian import SHIFT, FactoredLaplacian, factor_if_cheap
from gmn_prep.encodings.locality import bandwidth_order, renumbered
from tests.reference.encodings import dense_laplacian, graph_ranges
from tests.strategies import graphs


def check_against_dense(graph: Graph, k: int, found: LaplacianEncoding, tolerance: float) -> None:
    """Right eigenvalues, orthonormal vectors off the trivial one, honest residuals; padding where a graph is short."""
    full = dense_laplacian(graph)
    for g, (lo, hi) in enumerate(graph_ranges(graph)):
        laplacian, count = full[lo:hi, lo:hi], min(k, max(hi - lo - 1, 0))
        vectors = found.vectors[lo:hi].astype(np.float64)
        assert np.isnan(found.values[g, count:]).all()
        assert np.isnan(found.residuals[g, count:]).all()
        assert not vectors[:, count:].any()
        if count == 0:
            continue
        vectors, values = vectors[:, :count], found.values[g, :count].astype(np.float64)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(laplacian)[1 : count + 1], atol=tolerance)
        assert np.all(np.diff(values) > -tolerance)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-4)
        residuals = np.linalg.norm(laplacian @ vectors - vectors * values, axis=0)
        np.testing.assert_allclose(found.residuals[g, :count], residuals, atol=1e-5)
        assert residuals.max() <= tolerance
        degree = np.diff(graph.indptr[lo : hi + 1])
        if degree.any() and not graph.directed:
            assert np.abs(np.sqrt(degree) @ vectors).max() <= 1e-4 * np.sqrt(degree.sum())


@given(graphs(), st.integers(1, 14))
def test_small_graphs_agree_with_dense(graph: Graph, k: int) -> None:
    largest = max(hi - lo for lo, hi in graph_ranges(graph))
    if k > largest - 1:
        with pytest.raises(ConfigError, match=f"largest possible k is {max(largest - 1, 0)}"):
            laplacian_encoding(graph, k)
        return
    found = laplacian_encoding(graph, k)
    assert found.vectors.dtype == found.values.dtype == found.residuals.dtype == np.float32
    assert found.short_graphs == sum(hi - lo < k + 1 for lo, hi in graph_ranges(graph))
    check_against_dense(graph, k, found, tolerance=2e-6)


def from_networkx(network: nx.Graph, isolated: int = 0, **options: bool) -> Graph:
    edges = np.array(network.edges, dtype=np.int64).reshape(-1, 2)
    return Graph.from_edges(edges, network.number_of_nodes() + isolated, **options)


def disconnected(*networks: nx.Graph) -> nx.Graph:
    return nx.disjoint_union_all(networks)


LARGE = {
    "grid, double eigenvalues": lambda: from_networkx(nx.convert_node_labels_to_integers(nx.grid_2d_graph(26, 26))),
    "scale-free": lambda: from_networkx(nx.barabasi_albert_graph(900, 3, seed=1)),
    "cycle, tiny eigenvalues": lambda: from_networkx(nx.cycle_graph(600)),
    "star, 698-fold eigenvalue": lambda: from_networkx(nx.star_graph(699)),
    "complete": lambda: from_networkx(nx.complete_graph(520)),
    "complete bipartite": lambda: from_networkx(nx.complete_bipartite_graph(300, 300)),
    "no edge": lambda: from_networkx(nx.empty_graph(600)),
    "three parts and isolated nodes": lambda: from_networkx(
        disconnected(
            nx.random_regular_graph(4, 300, seed=2), nx.gnp_random_graph(300, 0.02, seed=3), nx.cycle_graph(5)
        ),
        isolated=40,
    ),
    "200 triangles": lambda: from_networkx(disconnected(*[nx.complete_graph(3)] * 200)),
    "few edges": lambda: from_networkx(disconnected(*[nx.path_graph(2)] * 4), isolated=600),
    "self-loops and repeats": lambda: Graph.from_edges(
        np.random.default_rng(4).integers(0, 600, size=(2000, 2)) // [[1, 2]],
        600,
        keep_self_loops=True,
        keep_duplicates=True,
    ),
    "directed": lambda: from_networkx(nx.gnp_random_graph(600, 0.01, seed=5, directed=True), directed=True),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_graphs_agree_with_dense(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if dtype == "float32":
        monkeypatch.setattr(chebyshev_krylov, "FLOAT32_ROWS", 0)
    graph = LARGE[name]()
    check_against_dense(graph, 8, laplacian_encoding(graph, 8), tolerance=1e-4)


def test_factors_and_filter_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 45))
    graph = from_networkx(disconnected(grid, nx.path_graph(70)), isolated=3)
    factored = laplacian_encoding(graph, 6)
    monkeypatch.setattr(chebyshev_krylov, "factor_if_cheap", lambda *_: None)
    filtered = laplacian_encoding(graph, 6)
    np.testing.assert_allclose(factored.values, filtered.values, atol=1e-6)
    np.testing.assert_allclose(factored.vectors, filtered.vectors, atol=1e-2)


def test_only_narrow_graphs_are_factored() -> None:
    for name, expected in (("grid, double eigenvalues", True), ("scale-free", False), ("complete", False)):
        graph = LARGE[name]()
        order = bandwidth_order(graph.indptr, graph.indices)
        assert (factor_if_cheap(*renumbered(graph.indptr, graph.indices, order)) is not None) == expected, name


def test_solving_is_the_inverse() -> None:
    graph = Graph.from_edges(np.array([[0, 1], [1, 2], [2, 2], [2, 3], [3, 0], [0, 1]]), 5, keep_self_loops=True)
    x, out = np.random.default_rng(0).normal(size=(5, 3)), np.empty((5, 3))
    FactoredLaplacian(graph.indptr, graph.indices).solve(x, out)
    np.testing.assert_allclose((dense_laplacian(graph) + SHIFT * np.eye(5)) @ out, x, atol=1e-8)


def test_small_eigenvalues_get_small_residuals() -> None:
    graph = LARGE["cycle, tiny eigenvalues"]()
    found = laplacian_encoding(graph, 4)
    assert np.all(found.residuals <= found.values / 90)


def test_a_dataset_mixes_small_and_large_graphs() -> None:
    sizes, edges, offset = [700, 0, 1, 40, 640, 3], [], 0
    for size in sizes:
        network = nx.gnp_random_graph(size, min(1.0, 8 / max(size, 1)), seed=size)
        edges.append(np.array(network.edges, dtype=np.int64).reshape(-1, 2) + offset)
        offset += size
    graph = Graph.from_edges(np.concatenate(edges), offset, graph_ptr=np.concatenate([[0], np.cumsum(sizes)]))
    found = laplacian_encoding(graph, 5, threads=2)
    assert found.short_graphs == 3
    check_against_dense(graph, 5, found, tolerance=1e-4)


@pytest.mark.parametrize("name", ["grid, double eigenvalues", "scale-free", "three parts and isolated nodes"])
def test_bytes_do_not_depend_on_threads(name: str) -> None:
    one, two, three = (laplacian_encoding(LARGE[name](), 6, threads=t) for t in (1, 2, 3))
    for other in (two, three):
        assert one.vectors.tobytes() == other.vectors.tobytes()
        assert one.residuals.tobytes() == other.residuals.tobytes()


def test_progress_rises_to_the_number_of_nodes() -> None:
    heard: list[tuple[int, int]] = []
    laplacian_encoding(
        LARGE["grid, double eigenvalues"](), 3, on_progress=lambda done, total: heard.append((done, total))
    )
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert heard[-1] == (676, 676)


def test_two_directed_edges_are_not_read_sideways() -> None:
    """An edge array of shape (2, 2) is rows of (source, target): two slots once came out transposed."""
    graph = Graph.from_edges(np.array([[0, 1], [0, 2]]), 3, directed=True)
    check_against_dense(graph, 2, laplacian_encoding(graph, 2), tolerance=2e-6)


def test_k_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        laplacian_encoding(from_networkx(nx.path_graph(4)), 0)
