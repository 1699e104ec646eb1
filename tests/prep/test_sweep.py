"""Tokens read from a graph in order are those of the plain tokenizer, and orderings made in bands those of one sort."""

import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmn_pipeline import Graph
from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_prep.orderings import compute_ordering, tie_breaking
from gmn_prep.tokens.sweep import Span, SweepTokenizer, span_bytes_per_node
from gmn_prep.tokens.tokenizer import Tokenizer
from tests.stores import ring_graph
from tests.strategies import graphs, settings


@given(graphs(directed=False, max_nodes=150), settings(), st.sampled_from(["uniform", "non-backtracking"]), st.data())
def test_blocks_are_those_of_the_tokenizer(
    graph: Graph, sizes: tuple[int, int, int], walk: str, data: st.DataObject
) -> None:
    graph = graph.replace(edge_attr=None)
    tokenizer = Tokenizer.of(graph, TokenSettings(*sizes, walk=walk, seed=3))  # type: ignore[arg-type]
    span, block = data.draw(st.integers(1, 200), "span"), data.draw(st.integers(1, 70), "block")
    sweep = SweepTokenizer(tokenizer, span * span_bytes_per_node(tokenizer), threads=2)
    with ThreadPoolExecutor(2) as pool:
        for first in range(0, graph.num_nodes, block):
            last = min(first + block, graph.num_nodes)
            plain, swept = (which.block(first, last, pool) for which in (tokenizer, sweep))
            assert plain.first_node == swept.first_node
            for (name, left), right in zip(plain.arrays().items(), swept.arrays().values(), strict=True):
                assert left.dtype == right.dtype, name
                assert np.array_equal(left, right), name


def test_a_span_is_dropped_before_the_next_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at a time would take twice the memory."""
    spans: list[weakref.ref[Span]] = []

    def take(*arguments: Any, take: Any = SweepTokenizer._take_span) -> Span:
        assert all(span() is None for span in spans)
        span: Span = take(*arguments)
        spans.append(weakref.ref(span))
        return span

    monkeypatch.setattr(SweepTokenizer, "_take_span", take)
    tokenizer = Tokenizer.of(ring_graph(), TokenSettings(2, 2, 1))
    sweep = SweepTokenizer(tokenizer, 4 * span_bytes_per_node(tokenizer), threads=1)
    with ThreadPoolExecutor(1) as pool:
        for first in range(0, 40, 4):
            sweep.block(first, first + 4, pool)
    assert len(spans) > 1


@given(graphs(), st.sampled_from(["degree", "random", "pagerank"]), st.integers(1, 30))
def test_an_ordering_does_not_depend_on_its_bands(graph: Graph, name: str, most: int) -> None:
    whole = compute_ordering(graph, name, seed=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tie_breaking, "NODES_AT_A_TIME", most)
        cut = compute_ordering(graph, name, seed=1)
    assert np.array_equal(whole.permutation, cut.permutation)
    assert np.array_equal(whole.ranks, cut.ranks)
