"""Token encoders equal their slow twins, their kernels equal autograd, and `rwf` sees what message passing cannot."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline import Graph, TokenSettings
from gmn_pipeline.errors import ModelError
from gmn_train.data.token_chunks import TokenChunk, move
from gmn_train.model.encoders import local, make_encoder, pooling
from gmn_train.model.encoders.rwf import level_features
from gmn_train.model.layers.token_marks import TokenMarks, keep_mask
from gmn_train.model.tables import ENCODERS
from gmn_train.settings.model_settings import ModelConfig
from tests import strategies
from tests.reference import token_encoders as twin
from tests.reference.tokens import sequence
from tests.train.model_stores import token_chunk

WIDTH = 6


def some_graphs(max_nodes: int, many: bool | None = None):
    """Any graph that has nodes: an empty one has no tokens to encode."""
    return strategies.graphs(max_nodes=max_nodes, many=many).filter(lambda graph: graph.num_nodes > 0)


TWINS = {
    "mean": lambda token, _graph, _encoder, prepared: twin.mean_token(token, prepared[0]),
    "local": lambda token, graph, _encoder, prepared: twin.local_token(token, graph.directed, *prepared)[:WIDTH],
    "gatedgcn": lambda token, graph, encoder, prepared: twin.gated_token(
        token, graph, prepared[0], prepared[1] if len(prepared) > 1 else None, list(encoder.convolutions)
    ),
    "gine": lambda token, graph, encoder, prepared: twin.gine_token(
        token, graph, prepared[0], prepared[1] if len(prepared) > 1 else None, list(encoder.convolutions)
    ),
    "rwf": lambda token, graph, encoder, prepared: twin.rwf_token(
        token, graph, prepared[0], prepared[1] if len(prepared) > 1 else None, encoder
    ),
}  # fmt: skip


def random_states(graph: Graph, seed: int) -> tuple[torch.Tensor, torch.Tensor | None]:
    rng = torch.Generator().manual_seed(seed)
    h = torch.randn(graph.num_nodes, WIDTH, dtype=torch.float64, generator=rng)
    edges = torch.randn(graph.num_slots, WIDTH, dtype=torch.float64, generator=rng)
    return h, edges if graph.edge_attr is not None else None


@pytest.mark.parametrize("name", ENCODERS)
@settings(max_examples=12, deadline=None)
@given(graph=some_graphs(6), mMs=strategies.settings(max_m=3, max_M=2, max_s=2), seed=st.integers(0, 9))
def test_encoder_equals_its_slow_twin(name, graph, mMs, seed):
    tokens = TokenSettings(*mMs, seed=seed)
    h, edges = random_states(graph, seed)
    torch.manual_seed(seed)
    config = ModelConfig(encoder=name, width=WIDTH, encoder_layers=2, rwf_window=3)
    encoder = make_encoder(config, edges is not None).double()
    with torch.no_grad():
        prepared = encoder.prepare(h, edges)
        ours = encoder(token_chunk(graph, tokens), *prepared)
        theirs = [
            TWINS[name](token, graph, encoder, prepared)
            for node in range(graph.num_nodes)
            for token in sequence(graph, tokens, node)
        ]
    assert ours.shape == (graph.num_nodes * tokens.sequence_length, WIDTH)
    if theirs:
        torch.testing.assert_close(ours, torch.stack(theirs), rtol=1e-9, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(graph=some_graphs(8), mMs=strategies.settings(), seed=st.integers(0, 9))
def test_kernels_and_their_gradients_equal_torch(graph, mMs, seed):
    chunk = token_chunk(graph, TokenSettings(*mMs, seed=seed))
    rng = torch.Generator().manual_seed(seed)
    states = [torch.randn(graph.num_nodes, 48, dtype=torch.float64, generator=rng).requires_grad_() for _ in range(3)]
    weights = torch.randn(len(chunk.node_ptr) - 1, 48, dtype=torch.float64, generator=rng)
    for function, used in (
        (lambda: pooling.pool_tokens(states[0], chunk), states[:1]),
        (lambda: local.sum_messages(chunk, *states), states),
    ):
        found = []
        for kernels in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                for module in (pooling, local):
                    patch.setattr(module, "has_kernels", lambda _, kernels=kernels: kernels)
                out = function()
                found.append([out.detach(), *torch.autograd.grad(out, used, weights)])
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_gradients_do_not_depend_on_the_number_of_threads():
    graph = Graph.from_edges(np.random.default_rng(0).integers(0, 40, (120, 2)), 40)
    chunk = token_chunk(graph, TokenSettings(3, 3, 2))
    x = torch.randn(40, 48, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weights = torch.randn(len(chunk.node_ptr) - 1, 48, generator=torch.Generator().manual_seed(1))
    found = []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(torch.autograd.grad(local.sum_messages(chunk, x, 2 * x, -x), x, weights)[0])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(found[0], other) for other in found[1:])


@settings(max_examples=15, deadline=None)
@given(graph=some_graphs(7, many=False), seed=st.integers(0, 9), window=st.integers(1, 5))
def test_walk_windows_equal_networkx(graph, seed, window):
    tokens = TokenSettings(3, 2, 2, seed=seed)
    chunk = token_chunk(graph, tokens)
    for level in range(1, 4):
        states, _, windows = level_features(chunk, level, window)
        rows, nodes = [], []
        for node in range(graph.num_nodes):
            for token in sequence(graph, tokens, node):
                if token.level == level:
                    for path in ([0, *walk] for walk in token.walks):
                        rows += twin.walk_features(token, path, window)
                        nodes += [token.nodes[i] for i in path]
        assert windows.tolist() == rows
        assert states.tolist() == nodes


def cycles(*lengths: int) -> list[tuple[int, int]]:
    edges, start = [], 0
    for n in lengths:
        edges += [(start + i, start + (i + 1) % n) for i in range(n)]
        start += n
    return edges


DECALIN = [*cycles(6), (0, 6), (6, 7), (7, 8), (8, 9), (9, 1)]  # two six-rings that share an edge
BICYCLOPENTYL = [*cycles(5, 5), (0, 5)]  # two five-rings joined by an edge
# Seen from A = 0, both have two nodes at distance 1, two at distance 2 and one at distance 3; they differ in the links
# between those groups, which is what a method based on distances alone cannot see.
DISTANCES_1 = [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)]
DISTANCES_2 = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 5), (4, 5)]


def mean_encoding(edges: list[tuple[int, int]], walk_seed: int, roots: list[int] | None = None) -> torch.Tensor:
    """The mean rwf encoding over nodes (or of `roots` only) and many walks, with equal features everywhere."""
    graph = Graph.from_edges(np.array(edges))
    chunk = token_chunk(graph, TokenSettings(6, 8, 24, walk="non-backtracking", seed=walk_seed))
    torch.manual_seed(0)
    encoder = make_encoder(ModelConfig(encoder="rwf", width=16, rwf_window=6), edge_features=False)
    with torch.no_grad():
        tokens = encoder(chunk, *encoder.prepare(torch.ones(graph.num_nodes, 16), None))
    by_node = tokens.view(graph.num_nodes, -1, 16).mean(1)
    return by_node[roots].mean(0) if roots else by_node.mean(0)


@pytest.mark.parametrize(
    ("one", "other", "roots"),
    [
        (cycles(3, 3), cycles(6), None),
        (DECALIN, BICYCLOPENTYL, None),
        (DISTANCES_1, DISTANCES_2, [0]),
    ],
    ids=["two triangles or a hexagon", "decalin or bicyclopentyl", "equal distances from A"],
)
def test_rwf_tells_apart_what_colour_refinement_or_distances_do_not(one, other, roots):
    a, b = nx.Graph(one), nx.Graph(other)
    if roots is None:
        for g in (a, b):
            nx.set_node_attributes(g, "same", "colour")
        hashes = [nx.weisfeiler_lehman_graph_hash(g, node_attr="colour", iterations=10) for g in (a, b)]
        assert hashes[0] == hashes[1]
    else:
        groups = [sorted(nx.single_source_shortest_path_length(g, 0).values()) for g in (a, b)]
        assert groups[0] == groups[1]
    assert not nx.is_isomorphic(a, b)
    rng = np.random.default_rng(1)
    perm = np.concatenate([[0], 1 + rng.permutation(a.number_of_nodes() - 1)])
    copy = [(int(perm[u]), int(perm[w])) for u, w in one]
    encoding = mean_encoding(one, 0, roots)
    noise = (encoding - mean_encoding(copy, 1, roots)).norm()  # an isomorphic copy with other walks
    assert (encoding - mean_encoding(other, 2, roots)).norm() > 4 * noise


@settings(max_examples=20, deadline=None)
@given(
    p=st.sampled_from([0.0, 0.25, 0.5]), seed=st.integers(0, 5), dtype=st.sampled_from([torch.float32, torch.float64])
)
def test_marks_equal_plain_torch(p, seed, dtype):
    graph = Graph.from_edges(np.array(cycles(7)))
    chunk = token_chunk(graph, TokenSettings(3, 2, 2, seed=seed))
    rng = torch.Generator().manual_seed(seed)
    marks = TokenMarks(WIDTH, 4, p).to(dtype)
    marks.size_weight.data.normal_(generator=rng)
    tokens = torch.randn(len(chunk.node_ptr) - 1, WIDTH, generator=rng).to(dtype).requires_grad_()
    weights = torch.randn(tokens.shape, generator=rng).to(dtype)
    inputs = [tokens, marks.level, marks.size_weight]
    ours = marks(tokens * 1, chunk, key=seed + 99)
    mask = keep_mask(chunk, WIDTH, seed + 99, round(p * 65536)).to(dtype)
    levels = torch.from_numpy(np.tile(chunk.settings.levels, len(chunk)))
    log_size = chunk.node_ptr.diff().to(dtype).log().unsqueeze(1)
    theirs = (tokens + marks.level[levels] + log_size * marks.size_weight) * mask
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(
        torch.autograd.grad(ours, inputs, weights), torch.autograd.grad(theirs, inputs, weights), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_dropout_keeps_the_asked_share_and_follows_the_node_not_the_chunk():
    graph = Graph.from_edges(np.array(cycles(300)))
    chunk = token_chunk(graph, TokenSettings(2, 2, 2))
    mask = keep_mask(chunk, 64, key=5, threshold=round(0.3 * 65536))
    assert abs(float((mask == 0).double().mean()) - 0.3) < 0.01
    assert mask.unique().tolist() == pytest.approx([0, 1 / 0.7], rel=1e-3)
    part = move(chunk, "cpu")
    object.__setattr__(part, "node_ids", chunk.node_ids[100:])
    assert torch.equal(keep_mask(part, 64, 5, round(0.3 * 65536)), mask[100 * chunk.length :])
    assert not torch.equal(keep_mask(chunk, 64, 6, round(0.3 * 65536)), mask)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 5}, "there are 5 rows"),
        ({"node_ptr": torch.zeros(3, dtype=torch.int64)}, "node_ptr is"),
        ({"edges": torch.full((14, 2), 9, dtype=torch.uint8)}, "edge_ptr|beyond its token"),
        ({"walks": torch.zeros(2, 2, dtype=torch.uint8)}, "walks has shape"),
        ({"walks": torch.full((7, 2), 200, dtype=torch.uint8)}, "walks holds an index beyond"),
        ({"edges": torch.zeros(1, 2, dtype=torch.int64)}, "edge_ptr|unsigned"),
    ],
)
def test_bad_chunks_are_refused_before_a_kernel_sees_them(change, message):
    chunk = token_chunk(Graph.from_edges(np.array(cycles(7))), TokenSettings(1, 2, 1))
    fields = {name: getattr(chunk, name) for name in chunk.__dataclass_fields__}
    with pytest.raises(ModelError, match=message):
        TokenChunk(**{**fields, **change})


def test_encoders_name_what_they_lack():
    graph = Graph.from_edges(np.array(cycles(5)))
    chunk = token_chunk(graph, TokenSettings(2, 2, 1))
    for part in ("edges", "edge_ptr", "walks"):
        object.__setattr__(chunk, part, None)
    for name in ("local", "gatedgcn", "gine", "rwf"):
        encoder = make_encoder(ModelConfig(encoder=name, width=4), edge_features=False)
        with pytest.raises(ModelError, match="edges"):
            encoder(chunk, *encoder.prepare(torch.zeros(5, 4), None))
