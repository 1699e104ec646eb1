"""What the model is given: rows, tokens, order, encodings and draws, for whole graphs, batches and many graphs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline import Graph, Task, TokenSettings
from gmn_pipeline.errors import ModelError, StoreError
from gmn_train.data.draws import draw_repeats, draw_signs, draw_ties
from gmn_train.data.inputs import to_device
from gmn_train.data.inputs.degrees import degree_profile
from gmn_train.data.inputs.rows import concatenate_ranges
from gmn_train.model import InputSource, ModelConfig, batch_inputs, whole_inputs
from tests.stores import ring_graph
from tests.train.model_stores import model_store

TOKENS = TokenSettings(3, 2, 3)
CONFIG = ModelConfig(encoder="rwf", width=8)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    graph = ring_graph(edge_features=True)
    return model_store(tmp_path_factory.mktemp("s") / "ring.zarr", graph, TOKENS, laplacian=4, random_walk=3)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Five graphs of 3..7 nodes, with edge features."""
    rng = np.random.default_rng(0)
    sizes = np.arange(3, 8)
    starts = np.append(0, np.cumsum(sizes))
    edges = np.concatenate(
        [np.stack([np.arange(n), (np.arange(n) + 1) % n], 1) + s for n, s in zip(sizes, starts, strict=False)]
    )
    graph = Graph.from_edges(
        edges,
        starts[-1],
        edge_attr=rng.integers(0, 4, (len(edges), 1)),
        x=rng.integers(0, 6, (starts[-1], 2)),
        graph_ptr=starts,
        y=rng.integers(0, 2, 5),
        task=Task.of("graph", "binary", 2),
    )
    return model_store(tmp_path_factory.mktemp("s") / "many.zarr", graph, TOKENS, laplacian=2)


def test_whole_graph_holds_every_node_once_and_its_tokens(store):
    inputs = whole_inputs(InputSource(store.view(), CONFIG))
    g, n = store.graph, store.num_nodes
    assert (inputs.rows, inputs.scanned, inputs.targets) == (n, n, n)
    assert torch.equal(inputs.x, torch.from_numpy(g.x.copy()))
    assert inputs.encodings.shape == (n, 7)
    assert torch.equal(inputs.degrees[:, 0], torch.from_numpy(np.log1p(g.degrees).astype(np.float32)))
    batch, chunk = store.view().gather(np.arange(n)), inputs.tokens[0]
    assert np.array_equal(chunk.nodes, batch.nodes)
    assert np.array_equal(chunk.edges, batch.edges)
    assert np.array_equal(chunk.edge_rows, batch.edge_slots)
    last = chunk.nodes[chunk.node_ptr[:-1].view(n, -1)[:, -1]]
    assert torch.equal(last.long(), torch.arange(n))  # the last position is the node itself


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_degree_profile_is_that_of_its_slow_twin(nodes, pairs, directed):
    edges = np.array([(a % nodes, b % nodes) for a, b in pairs], np.int64).reshape(-1, 2)
    graph = Graph.from_edges(edges, nodes, directed=directed)
    profile = degree_profile(graph.indptr, graph.indices, graph.degrees)
    for node in range(nodes):
        near = [math.log(1 + graph.degrees[u]) for u in graph.indices[graph.indptr[node] : graph.indptr[node + 1]]]
        slow = [min(near), max(near), np.mean(near), np.std(near)] if near else [0, 0, 0, 0]
        assert np.allclose(profile[node], slow, atol=1e-6)


def test_the_degree_profile_stands_beside_the_degree_in_whole_graphs_and_batches(store):
    source = InputSource(store.view(), CONFIG.changed(degree_profile=True))
    whole, ids = whole_inputs(source), np.array([7, 30, 2])
    assert whole.degrees.shape == (store.num_nodes, 5)
    batch = batch_inputs(source, ids)
    assert torch.equal(batch.degrees, whole.degrees[batch.node_ids])
    only = InputSource(store.view(), CONFIG.changed(degree_profile=True, log_degree=False))
    assert torch.equal(whole_inputs(only).degrees, whole.degrees[:, 1:])
    assert only.facts.extra_columns == source.facts.extra_columns - 1


def test_chunks_are_slices_of_the_whole_and_lazy_ones_are_equal(store):
    source = InputSource(store.view(), CONFIG, seed=3)
    whole = whole_inputs(source, epoch=5).tokens[0]
    for keep in (True, False):
        chunks = whole_inputs(source, epoch=5, chunk_nodes=7, keep_tokens=keep).tokens
        assert len(chunks) == 6
        assert [c.first for c in chunks] == list(range(0, 40, 7))
        for name in ("nodes", "edges", "edge_rows", "walks", "node_ids"):
            assert torch.equal(torch.cat([getattr(c, name) for c in chunks]), getattr(whole, name)), name
    with pytest.raises(IndexError):
        chunks[6]


def test_batch_maps_token_nodes_edges_and_features_to_rows(store):
    g = store.graph
    source = InputSource(store.view(), CONFIG, seed=1)
    ids = np.array([7, 30, 2, 19])
    whole = whole_inputs(source, epoch=2)
    for context in (False, True):
        inputs = batch_inputs(source, ids, epoch=2, scan_context=context)
        rows = inputs.node_ids.numpy()
        assert inputs.targets == 4
        assert inputs.scanned == (inputs.rows if context else 4)
        assert np.array_equal(rows[:4], ids)
        assert len(set(rows)) == len(rows)
        chunk = inputs.tokens[0]
        gathered = source.view.gather(ids, repeats=draw_repeats(1, 2, ids, 3, 3, 3))
        assert np.array_equal(rows[chunk.nodes.numpy()], gathered.nodes)
        assert np.array_equal(inputs.edge_attr[chunk.edge_rows].numpy(), g.edge_attr[gathered.edge_slots])
        assert torch.equal(inputs.encodings, whole.encodings[rows])  # signs do not depend on the batch
        scanned = rows[: inputs.scanned]
        wanted = {(u, w) for u in scanned for w in g.indices[g.indptr[u] : g.indptr[u + 1]] if w in scanned}
        found = [(rows[a], rows[b]) for a, b in inputs.near.edge_index.T.tolist()]
        assert set(found) == wanted
        assert len(found) == len(wanted)
        slots = [next(k for k in range(g.indptr[u], g.indptr[u + 1]) if g.indices[k] == w) for u, w in found]
        assert np.array_equal(inputs.edge_attr[: len(found)].numpy(), g.edge_attr[slots])


def test_many_graphs_are_packed_in_the_order_asked_for(many):
    config = ModelConfig(encoder="gine", width=8)
    source, g = InputSource(many.view(), config), many.graph
    inputs = whole_inputs(source, [3, 1])
    assert inputs.order.graph_ptr.tolist() == [0, 6, 10]
    assert inputs.node_ids.tolist() == [*range(12, 18), *range(3, 7)]
    ids = inputs.node_ids.numpy()
    chunk = inputs.tokens[0]
    gathered = many.view().gather(ids)
    assert np.array_equal(ids[chunk.nodes.numpy()], gathered.nodes)
    assert np.array_equal(inputs.edge_attr[chunk.edge_rows].numpy(), g.edge_attr[gathered.edge_slots])
    edges = inputs.near.edge_index.numpy()
    assert np.array_equal(np.sort(edges[0] // 6), np.sort(edges[1] // 6))
    for a, b, row in zip(*edges, inputs.edge_attr.numpy(), strict=True):
        slot = g.indptr[ids[a]] + g.indices[g.indptr[ids[a]] : g.indptr[ids[a] + 1]].tolist().index(ids[b])
        assert np.array_equal(g.edge_attr[slot], row)
    for lo, hi in ((0, 6), (6, 10)):
        assert sorted(inputs.order.rows[lo:hi].tolist()) == list(range(lo, hi))


def test_order_is_by_rank_with_ties_by_a_draw_per_epoch(store):
    source = InputSource(store.view(), CONFIG)
    degrees = store.graph.degrees
    orders = [whole_inputs(source, epoch=e).order.rows for e in (None, None, 0, 1)]
    for rows in orders:
        assert np.all(np.diff(degrees[rows]) >= 0)
    assert torch.equal(orders[0], orders[1])  # evaluation is fixed
    assert not torch.equal(orders[2], orders[3])
    tied = orders[0][np.isin(degrees[orders[0]], np.flatnonzero(np.bincount(degrees) > 4))]
    assert tied.tolist() != sorted(tied.tolist())
    fixed = InputSource(store.view(), CONFIG.changed(order_ties="fixed"))
    assert torch.equal(whole_inputs(fixed, epoch=0).order.rows, whole_inputs(fixed, epoch=1).order.rows)


def test_laplacian_signs_flip_by_epoch_and_column_and_nothing_else(store):
    source = InputSource(store.view(), CONFIG)
    stored = torch.from_numpy(store.encoding("laplacian")["vectors"].copy()) * 40**0.5
    still = whole_inputs(source).encodings
    torch.testing.assert_close(still[:, :4], stored)
    seen = set()
    for epoch in range(12):
        flipped = whole_inputs(source, epoch=epoch).encodings
        signs = flipped[:, :4] / still[:, :4]
        assert torch.equal(signs, signs[:1].expand_as(signs))
        assert torch.equal(signs.abs(), torch.ones_like(signs))
        assert torch.equal(flipped[:, 4:], still[:, 4:])
        seen.add(tuple(signs[0].tolist()))
    assert len(seen) > 4
    kept = InputSource(store.view(), CONFIG.changed(lap_signs="stored"))
    assert torch.equal(whole_inputs(kept, epoch=3).encodings, still)


@settings(max_examples=30, deadline=None)
@given(stored=st.integers(1, 6), m=st.integers(1, 4), epoch=st.integers(0, 9), data=st.data())
def test_repeats_are_drawn_without_repetition_by_node_and_level_alone(stored, m, epoch, data):
    s = data.draw(st.integers(1, stored))
    ids = np.arange(20)
    drawn = draw_repeats(4, epoch, ids, m, s, stored)
    assert drawn.shape == (20, m, s)
    assert drawn.min() >= 0
    assert drawn.max() < stored
    assert np.all(np.diff(np.sort(drawn, 2), axis=2) > 0)
    assert np.array_equal(draw_repeats(4, epoch, ids[[11, 3]], m, s, stored), drawn[[11, 3]])


def test_draws_are_fair():
    drawn = draw_repeats(0, 0, np.arange(6000), 1, 1, 3)[:, 0, 0]
    assert np.all(np.abs(np.bincount(drawn) / 6000 - 1 / 3) < 0.03)
    assert abs(float(draw_signs(0, 0, np.arange(3000), 2).mean())) < 0.05
    assert len(np.unique(draw_ties(0, None, np.arange(5000)))) == 5000


def test_training_draws_s_of_the_stored_repeats_each_epoch(store):
    source = InputSource(store.view(s=1), CONFIG)
    found = [whole_inputs(source, epoch=e).tokens[0].nodes for e in range(3)]
    assert any(len(found[0]) != len(f) or not torch.equal(found[0], f) for f in found[1:])
    still = [whole_inputs(source).tokens[0].nodes for _ in range(2)]
    assert torch.equal(*still)
    kept = InputSource(store.view(s=1), CONFIG.changed(repeats="stored"))
    assert torch.equal(whole_inputs(kept, epoch=1).tokens[0].nodes, still[0])


def test_settings_decide_what_is_read(store, tmp_path):
    bare = InputSource(store.view(), CONFIG.changed(encodings="none", log_degree=False, token_blocks="none"))
    inputs = whole_inputs(bare)
    assert inputs.encodings is None
    assert inputs.degrees is None
    assert len(inputs.tokens) == 0
    assert bare.facts.extra_columns == 0
    assert InputSource(store.view(), CONFIG.changed(encodings="random_walk")).facts.extra_columns == 4
    assert len(whole_inputs(InputSource(store.view(m=0), CONFIG)).tokens) == 0
    plain = model_store(tmp_path / "plain.zarr", ring_graph(), TOKENS)
    assert InputSource(plain.view(), CONFIG).facts.extra_columns == 1  # `all` of those stored: none
    with pytest.raises(StoreError, match="no encoding 'laplacian'"):
        _ = InputSource(plain.view(), CONFIG.changed(encodings="laplacian")).facts
    with pytest.raises(StoreError, match="no ordering 'pagerank'"):
        whole_inputs(InputSource(plain.view(), CONFIG.changed(order="pagerank")))


def test_bad_requests_are_refused(store, many):
    source = InputSource(store.view(), CONFIG)
    for call, message in (
        (lambda: batch_inputs(source, [1, 1]), "names a node twice"),
        (lambda: batch_inputs(InputSource(many.view(), CONFIG), [1]), "one large graph"),
        (lambda: whole_inputs(source, [1]), "the store has 0..0"),
        (lambda: whole_inputs(source, chunk_nodes=0), "at least 1"),
        (lambda: batch_inputs(source, [1, 2], pairs=[[1, 3]]), "not among the batch's"),
        (lambda: whole_inputs(source, pairs=[1, 2]), "expected \\(K, 2\\)"),
    ):
        with pytest.raises(ModelError, match=message):
            call()
    assert batch_inputs(source, [5, 9, 2], pairs=[[2, 5], [9, 9]]).pairs.tolist() == [[2, 0], [1, 1]]


def test_features_that_are_not_finite_are_named(tmp_path):
    graph = ring_graph()
    x = graph.x.copy()
    x[3, 1] = np.nan
    broken = model_store(tmp_path / "nan.zarr", graph.replace(x=x), TOKENS)
    with pytest.raises(ModelError, match="x holds 1 NaN"):
        whole_inputs(InputSource(broken.view(), CONFIG))


def test_moving_keeps_everything(store):
    inputs = whole_inputs(InputSource(store.view(), CONFIG), chunk_nodes=9)
    moved = to_device(inputs, "cpu")
    assert torch.equal(moved.x, inputs.x)
    assert torch.equal(moved.order.places, inputs.order.places)
    assert [len(c) for c in moved.tokens] == [len(c) for c in inputs.tokens]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8))
def test_ranges_are_concatenated(ranges):
    starts, counts = (
        (np.array(c, dtype=np.int64) for c in zip(*ranges, strict=True)) if ranges else (np.zeros(0, np.int64),) * 2
    )
    wanted = [i for a, c in ranges for i in range(a, a + c)]
    assert concatenate_ranges(starts, counts).tolist() == wanted
