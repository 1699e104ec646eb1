"""Walks: the law they follow, and the slow twin step by step."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gmn_pipeline import Graph, TokenSettings
from gmn_pipeline.counter_random import Purpose, root_key
from gmn_prep.tokens.tokenizer import Tokenizer
from gmn_prep.tokens.walks import WALK_LAWS, sample_walks
from tests.reference.tokens import walk
from tests.stores import ring_graph
from tests.strategies import graphs

laws = st.sampled_from(sorted(WALK_LAWS))


def walks_of(graph: Graph, settings: TokenSettings) -> np.ndarray:
    """(n, W) all walks as node ids."""
    out = np.empty((graph.num_nodes, settings.walk_entries), dtype=np.int64)
    root, t = root_key(settings.seed, Purpose.WALK), settings
    sample_walks(graph.indptr, graph.indices, root, WALK_LAWS[t.walk], 0, graph.num_nodes, t.m, t.M, t.s, out)
    return out


@given(graph=graphs(), law=laws, m=st.integers(1, 5), M=st.integers(1, 3), s=st.integers(1, 2), seed=st.integers(0, 9))
def test_walks_equal_the_slow_twin(graph: Graph, law, m: int, M: int, s: int, seed: int) -> None:
    settings = TokenSettings(m, M, s, law, seed)
    found = walks_of(graph, settings)
    for node in range(graph.num_nodes):
        wanted = [
            step
            for level in range(m, 0, -1)
            for repeat in range(s)
            for number in range(M)
            for step in walk(graph, settings, node, level, repeat, number)
        ]
        assert found[node].tolist() == wanted


def test_steps_are_uniform_over_neighbours() -> None:
    star = Graph.from_edges([[0, i] for i in range(1, 8)])
    settings = TokenSettings(m=1, M=7_000, s=1)
    counts = np.bincount(walks_of(star, settings)[0], minlength=8)[1:]
    assert stats.chisquare(counts).pvalue > 1e-4


def test_parallel_edges_weigh_a_step() -> None:
    graph = Graph.from_edges([[0, 1], [0, 1], [0, 1], [0, 2]], keep_duplicates=True)
    counts = np.bincount(walks_of(graph, TokenSettings(m=1, M=8_000, s=1))[0], minlength=3)[1:]
    assert stats.chisquare(counts, [6_000, 2_000]).pvalue > 1e-4


def test_every_step_of_a_long_walk_is_uniform() -> None:
    """On a complete graph each step forgets the one before: all (step, next) pairs are equally likely."""
    n = 6
    graph = Graph.from_edges([[i, j] for i in range(n) for j in range(i)])
    paths = walks_of(graph, TokenSettings(m=12, M=1, s=400))[:, : 12 * 400].reshape(n, 400, 12)
    pairs = np.bincount((paths[:, :, :-1] * n + paths[:, :, 1:]).ravel(), minlength=n * n).reshape(n, n)
    off_diagonal = pairs[~np.eye(n, dtype=bool)]
    assert np.trace(pairs) == 0
    assert stats.chisquare(off_diagonal).pvalue > 1e-4


def test_repeats_levels_and_walks_are_independent() -> None:
    """First steps of different repeats, levels and walks agree no more often than chance says."""
    graph = ring_graph(200, 600)
    settings = TokenSettings(m=2, M=2, s=2)
    found = walks_of(graph, settings)
    starts = [0, 2, 4, 6, 8, 9, 10, 11]  # where each walk of a node begins
    first = found[:, starts]
    chance = (1 / graph.degrees).mean()
    for i in range(len(starts)):
        for j in range(i):
            agree = (first[:, i] == first[:, j]).mean()
            assert abs(agree - chance) < 5 * np.sqrt(chance / graph.num_nodes)


@given(graph=graphs(directed=False), seed=st.integers(0, 99))
def test_non_backtracking_turns_back_only_at_a_dead_end(graph: Graph, seed: int) -> None:
    found = walks_of(graph, TokenSettings(m=6, M=1, s=1, walk="non-backtracking", seed=seed))
    for node in range(graph.num_nodes):
        path = [node, *found[node, :6].tolist()]
        for before, here, after in zip(path, path[1:], path[2:], strict=False):
            near = set(graph.indices[graph.indptr[here] : graph.indptr[here + 1]].tolist())
            assert after == here or after in near
            if after == before:
                assert near <= {before}


def test_a_node_without_neighbours_stays() -> None:
    graph = Graph.from_edges(np.zeros((0, 2), int), 3)
    for law in WALK_LAWS:
        assert walks_of(graph, TokenSettings(3, 2, 1, law)).tolist() == [[v] * 12 for v in range(3)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_blocks_do_not_depend_on_threads_or_on_their_borders(threads: int) -> None:
    graph = ring_graph(3000, 4000, edge_features=True)
    tokenizer = Tokenizer.of(graph, TokenSettings(4, 3, 2))
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(threads) as several:
        whole = tokenizer.block(0, 3000, one)
        same = tokenizer.block(0, 3000, several)
        for name, array in whole.arrays().items():
            np.testing.assert_array_equal(same.arrays()[name], array)
        parts = [tokenizer.block(a, b, several) for a, b in ((0, 700), (700, 701), (701, 3000))]
        for name in ("nodes", "edges", "walks", "sizes", "edge_sizes", "edge_slots"):
            np.testing.assert_array_equal(np.concatenate([p.arrays()[name] for p in parts]), whole.arrays()[name])
