"""Node orderings against networkx and dense eigenvectors."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmn_pipeline import Graph
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.tables import load_code
from gmn_prep.orderings import ORDERINGS, compute_ordering
from gmn_prep.orderings.eigenvector import eigenvector_centrality
from gmn_prep.orderings.k_core import k_core_keys
from gmn_prep.orderings.pagerank import pagerank
from gmn_prep.orderings.spectral import fiedler_places
from tests.reference import orderings as twins
from tests.reference.encodings import graph_ranges
from tests.strategies import graphs


@given(graphs())
def test_scores_agree_with_the_twins(graph: Graph) -> None:
    assert np.array_equal(load_code(ORDERINGS["degree"].keys)(graph, 1), twins.degree_scores(graph))
    assert np.array_equal(k_core_keys(graph), twins.k_core_scores(graph))
    np.testing.assert_allclose(pagerank(graph), twins.pagerank_scores(graph), atol=1e-9)
    np.testing.assert_allclose(eigenvector_centrality(graph), twins.eigenvector_scores(graph), atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_scores_of_larger_graphs_agree(seed: int) -> None:
    network = nx.barabasi_albert_graph(400, 2, seed=seed)
    network.add_edges_from(nx.gnp_random_graph(150, 0.1, seed=seed).edges)
    graph = Graph.from_edges(np.array(network.edges), 400)
    assert np.array_equal(k_core_keys(graph), twins.k_core_scores(graph))
    np.testing.assert_allclose(pagerank(graph), twins.pagerank_scores(graph), atol=1e-10)
    np.testing.assert_allclose(eigenvector_centrality(graph), twins.eigenvector_scores(graph), rtol=1e-5, atol=1e-9)


@given(graphs(), st.sampled_from(sorted(ORDERINGS)), st.integers(0, 5))
def test_permutation_and_ranks_belong_together(graph: Graph, name: str, seed: int) -> None:
    found = compute_ordering(graph, name, seed=seed)
    keys = load_code(ORDERINGS[name].keys)(graph, 1)
    assert found.permutation.dtype == graph.indices.dtype
    assert found.ranks.dtype == np.int32
    for lo, hi in graph_ranges(graph):
        part = found.permutation[lo:hi]
        assert np.array_equal(np.sort(part), np.arange(lo, hi))
        assert np.all(np.diff(keys[part].astype(np.int64)) >= 0)
        assert np.array_equal(found.ranks[lo:hi], np.unique(keys[lo:hi], return_inverse=True)[1])


@pytest.mark.parametrize("name", sorted(ORDERINGS))
def test_threads_do_not_change_an_ordering(name: str) -> None:
    random = np.random.default_rng(0)
    pointer = np.arange(0, 6001, 60)
    first = random.integers(0, 6000, 9000)
    edges = np.stack([first, first // 60 * 60 + random.integers(0, 60, 9000)], axis=1)
    graph = Graph.from_edges(edges, 6000, graph_ptr=pointer)
    one, two = (compute_ordering(graph, name, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.permutation, two.permutation)
    assert np.array_equal(one.ranks, two.ranks)


@pytest.mark.parametrize("seed", range(8))
def test_places_along_a_tree_agree_with_the_twin(seed: int) -> None:
    graph = Graph.from_edges(np.array(nx.random_labeled_tree(40, seed=seed).edges), 40)
    place, expected = fiedler_places(graph)[0], twins.fiedler_places(graph)
    np.testing.assert_allclose(min(place, 1 - place, key=lambda p: abs(p - expected).max()), expected, atol=1e-5)


def test_spectral_order_follows_chains_of_any_numbering() -> None:
    rng = np.random.default_rng(0)
    names = rng.permutation(1003)  # two chains of 601 and 401 nodes, and an isolated one
    chain = np.stack([names[:-1], names[1:]], axis=1)[np.delete(np.arange(1002), [600, 1001])]
    found = compute_ordering(Graph.from_edges(rng.permutation(chain), 1003), "spectral").permutation
    assert found[0] == names[1002]
    for got, wanted in ((found[1:402], names[601:1002]), (found[402:], names[:601])):
        assert np.array_equal(got, wanted) or np.array_equal(got, wanted[::-1])


@pytest.mark.parametrize("name", sorted(ORDERINGS))
@pytest.mark.parametrize("seed", range(4))
def test_equal_structure_is_a_tie(name: str, seed: int) -> None:
    """A graph beside a shuffled copy of itself: each node and its image have one rank."""
    rng = np.random.default_rng(seed)
    edges = np.array(nx.barabasi_albert_graph(60, 2, seed=seed).edges)
    shuffle = rng.permutation(60)
    both = Graph.from_edges(np.concatenate([edges, shuffle[edges] + 60]), 120)
    ranks = compute_ordering(both, name).ranks
    assert np.array_equal(ranks[:60], ranks[60 + shuffle])


@pytest.mark.parametrize("name", ["degree", "pagerank", "k-core", "eigenvector", "random"])
def test_ties_do_not_follow_the_ids(name: str) -> None:
    ring = Graph.from_edges(np.array(nx.cycle_graph(2000).edges), 2000)  # every node is like every other
    first, again, other = (compute_ordering(ring, name, seed=s) for s in (1, 1, 2))
    assert not first.ranks.any()
    assert np.array_equal(first.permutation, again.permutation)
    assert not np.array_equal(first.permutation, other.permutation)
    for found in (first, other):
        assert abs(np.corrcoef(found.permutation, np.arange(2000))[0, 1]) < 0.1


def test_ties_of_a_graph_without_edges() -> None:
    for name in ORDERINGS:
        assert not compute_ordering(Graph.from_edges(np.zeros((0, 2), int), 5), name).ranks.any()


def test_grid_ranks_follow_its_symmetry() -> None:
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(7, 7))
    graph = Graph.from_edges(np.array(grid.edges), 49)
    for name in ("degree", "pagerank", "k-core", "eigenvector"):
        ranks = compute_ordering(graph, name).ranks.reshape(7, 7)
        assert np.array_equal(ranks, ranks[::-1])
        assert np.array_equal(ranks, ranks.T)
    assert compute_ordering(graph, "eigenvector").ranks.reshape(7, 7).argmax() == 24


def test_two_directed_edges_are_not_read_sideways() -> None:
    """An edge array of shape (2, 2) is rows of (source, target): two slots once came out transposed."""
    graph = Graph.from_edges(np.array([[0, 1], [0, 2]]), 4, directed=True)
    assert np.array_equal(k_core_keys(graph), [1, 1, 1, 0])
    np.testing.assert_allclose(eigenvector_centrality(graph), twins.eigenvector_scores(graph), atol=1e-6)


def test_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'pagerank'"):
        compute_ordering(Graph.from_edges(np.array([[0, 1]]), 2), "page-rank")
