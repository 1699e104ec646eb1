"""GMN as a whole: every setting runs and learns, modes agree, nothing leaks, mistakes are named."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch.nn.functional import cross_entropy

from gmn_pipeline import Graph, Task, TokenSettings, TokenStore
from gmn_pipeline.console.config import Layer, load_config
from gmn_pipeline.errors import ConfigError, ModelError
from gmn_train.data.inputs.record import Neighbourhood, NodeOrder
from gmn_train.data.token_chunks import TokenChunk
from gmn_train.model import GMN, InputSource, ModelConfig, ModelInputs, batch_inputs, whole_inputs
from tests.stores import ring_graph
from tests.train.model_stores import model_store

TOKENS = TokenSettings(2, 3, 2)
SMALL = ModelConfig(width=16, states=4, node_layers=2, feature_mask=0.0)
DOCS = Path(__file__).parents[3] / "docs" / "model.md"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    graph = ring_graph(edge_features=True)
    return model_store(tmp_path_factory.mktemp("s") / "ring.zarr", graph, TOKENS, laplacian=3, random_walk=2)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    rng = np.random.default_rng(3)
    sizes = np.array([5, 9, 1, 7])
    starts = np.append(0, np.cumsum(sizes))
    edges = np.concatenate([rng.integers(0, n, (2 * n, 2)) + s for n, s in zip(sizes, starts, strict=False)])
    graph = Graph.from_edges(
        edges,
        starts[-1],
        x=rng.integers(0, 4, (starts[-1], 2)),
        graph_ptr=starts,
        y=rng.random((4, 3)).astype(np.float32),
        task=Task.of("graph", "regression", 3),
    )
    return model_store(tmp_path_factory.mktemp("s") / "many.zarr", graph, TOKENS)


def make_model(view, config, *, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    source = InputSource(view, config)
    return source, GMN(config, source.facts).to(dtype)


VARIANTS = {
    "default": {},
    "tokens of the input": {"token_blocks": "input", "token_layers": 2},
    "tokens after layer 1 only": {"token_blocks": (1,)},
    "one direction": {"bidirectional": False},
    "no MPNN": {"mpnn": "none"},
    "scan in one node layer": {"node_scan": (2,)},
    "no PE": {"encodings": "none"},
    "GMN-": {"encodings": "none", "mpnn": "none", "token_blocks": "input"},
    "MPNN only": {"node_scan": False, "token_blocks": "none"},
    "gatedgcn": {"mpnn": "gatedgcn", "encoder": "gatedgcn"},
    "gine": {"mpnn": "gine", "encoder": "gine"},
    "rwf": {"encoder": "rwf", "token_blocks": "input"},
    "mean": {"encoder": "mean", "readout": "both-ends", "token_order": "near-first"},
    "literal": {"mpnn_form": "literal", "residual": "identity", "norm": "layer", "shared_A": True},
    "ffn, masked features": {"ffn": 2.0, "feature_mask": 0.3, "input_dropout": 0.5, "norm": "none"},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_every_variant_trains_all_of_its_parameters(store, changes):
    source, model = make_model(store.view(), SMALL.changed(**changes))
    out = model(whole_inputs(source, epoch=0))
    assert out.logits.shape == (40, 3)
    assert out.embeddings.shape == (40, 16)
    out.logits.square().sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None]
    assert without == []


def test_laplacian_columns_start_with_small_weights(store):
    source, model = make_model(store.view(), SMALL)
    weight, features = model.project.linear.weight.detach(), source.facts.x_columns
    smooth = weight[:, features : features + source.facts.smooth_columns]
    assert smooth.shape[1] == source.encodings[0][1].shape[1] > 0
    others = torch.cat([weight[:, :features], weight[:, features + smooth.shape[1] :]], 1)
    assert 0.05 < smooth.std() / others.std() < 0.2


def test_the_literal_form_adds_messages_of_the_raw_input_to_the_last_scan(store):
    """Algorithm 1, line 18: BiMamba(Y) + Ψ(G, X ‖ P)."""
    config = SMALL.changed(mpnn_form="literal", residual="identity", norm="none", dropout=0.0)
    source, model = make_model(store.view(), config, dtype=torch.float64)
    inputs = whole_inputs(source)
    with torch.no_grad():
        both = model.eval()(inputs).embeddings
        raw, _ = model.embed(inputs)
        messages = model.literal_branch(raw, inputs.near, None)
        model.literal_branch = None
        scan = model(inputs).embeddings
    torch.testing.assert_close(both, scan + messages)
    assert messages.abs().max() > 1e-3


@pytest.mark.parametrize("name", ["gmn", "gmn-paper"])
def test_models_overfit_a_small_graph(store, name):
    config = ModelConfig.of(name, width=24, states=4, dropout=0.0, token_dropout=0.0, feature_mask=0.0)
    source, model = make_model(store.view(), config.changed(node_layers=2, lap_signs="stored", repeats="stored"))
    y = torch.from_numpy(store.graph.y.copy())
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(80):
        optimiser.zero_grad()
        loss = cross_entropy(model(whole_inputs(source, epoch=epoch)).logits, y)
        loss.backward()
        optimiser.step()
    model.eval()
    with torch.no_grad():
        assert (model(whole_inputs(source)).logits.argmax(1) == y).float().mean() > 0.95


@pytest.mark.parametrize("blocks", ["input", "between"])
@pytest.mark.parametrize("keep", [True, False])
def test_full_mode_by_chunks_equals_one_pass_with_dropout_on(store, blocks, keep):
    config = SMALL.changed(token_blocks=blocks, dropout=0.3, token_dropout=0.3, feature_mask=0.2)
    source, model = make_model(store.view(), config, dtype=torch.float64)
    found = []
    for options in ({}, {"chunk_nodes": 7, "keep_tokens": keep}):
        model.zero_grad()
        torch.manual_seed(5)
        out = model(whole_inputs(source, epoch=2, **options)).logits
        out.square().sum().backward()
        found.append([out.detach(), *(p.grad for p in model.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-8, atol=1e-9)


def test_a_batch_of_all_nodes_equals_the_whole_graph_in_any_order(store):
    for blocks in ("input", "between"):
        source, model = make_model(store.view(), SMALL.changed(token_blocks=blocks))
        model.eval()
        ids = np.random.default_rng(0).permutation(40)
        with torch.no_grad():
            whole = model(whole_inputs(source)).logits
            batch = model(batch_inputs(source, ids)).logits
            some = model(batch_inputs(source, ids[:9])).logits
        torch.testing.assert_close(batch, whole[ids], rtol=1e-4, atol=1e-5)
        assert some.shape == (9, 3)


def test_packed_graphs_equal_each_graph_alone(many):
    source, model = make_model(many.view(), SMALL.changed(pool="max"))
    model.eval()
    with torch.no_grad():
        together = model(whole_inputs(source, [3, 0, 2])).logits
        alone = torch.cat([model(whole_inputs(source, [g])).logits for g in (3, 0, 2)])
    assert together.shape == (3, 3)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pool", ["mean", "sum", "max"])
def test_pooling(many, pool):
    source, model = make_model(many.view(), SMALL.changed(pool=pool))
    h = torch.arange(12.0).view(6, 2)
    from gmn_train.model.layers.heads import pool_graphs

    wanted = torch.stack([getattr(part, {"max": "amax"}.get(pool, pool))(0) for part in (h[:4], h[4:])])
    torch.testing.assert_close(pool_graphs(h, torch.tensor([0, 4, 6]), pool), wanted)
    with pytest.raises(ModelError, match="graph 1 of the batch has no nodes"):
        pool_graphs(h, torch.tensor([0, 6, 6]), pool)
    assert model(whole_inputs(source)).embeddings.shape == (4, 16)


def relabelled(inputs: ModelInputs, view, to: np.ndarray) -> ModelInputs:
    """The inputs of the graph in which node v is called to[v], with the same tokens and the same scan order."""
    back = np.argsort(to)
    batch = view.gather(back)
    chunk = TokenChunk.of(batch, to[batch.nodes], batch.edge_slots, rows=len(to), directed=False)
    edges = torch.from_numpy(to)[inputs.near.edge_index]
    return ModelInputs(
        settings=inputs.settings,
        node_ids=torch.from_numpy(back),
        targets=inputs.targets,
        x=inputs.x[back],
        encodings=inputs.encodings[back],
        degrees=inputs.degrees[back],
        near=Neighbourhood(edges, len(to), symmetric=True),
        edge_attr=inputs.edge_attr,
        order=NodeOrder(torch.from_numpy(to)[inputs.order.rows], inputs.order.graph_ptr),
        tokens=(chunk,),
    )


@pytest.mark.parametrize("encoder", ["mean", "local", "gatedgcn", "gine", "rwf"])
@pytest.mark.parametrize("mpnn", ["gcn", "gatedgcn"])
def test_relabelling_permutes_the_outputs_and_changes_nothing_else(store, encoder, mpnn):
    view = store.view()
    source, model = make_model(view, SMALL.changed(encoder=encoder, mpnn=mpnn), dtype=torch.float64)
    model.eval()
    to = np.random.default_rng(4).permutation(40)
    inputs = whole_inputs(source)
    with torch.no_grad():
        one, other = model(inputs).logits, model(relabelled(inputs, view, to)).logits
    torch.testing.assert_close(other[to], one, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("leaking", [False, True])
def test_node_ids_leak_nothing_on_a_graph_of_equal_degrees(tmp_path, leaking):
    """Labels follow the ids; a node scan is all there is. In id order it would learn them, in ours it cannot."""
    n = 300
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], 1)
    y = (np.arange(n) >= n // 2).astype(np.int64)
    graph = Graph.from_edges(ring, n, y=y, task=Task.of("node", "binary", 2))
    view = model_store(tmp_path / "ring.zarr", graph, TokenSettings(0, 0, 0)).view()
    config = SMALL.changed(mpnn="none", log_degree=False, encodings="none", dropout=0.0, norm="layer")
    source, model = make_model(view, config)
    if leaking:
        source.ranks = np.arange(n)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(40):
        optimiser.zero_grad()
        logits = model(whole_inputs(source, epoch=epoch)).logits[:, 0]
        torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(y).float()).backward()
        optimiser.step()
    model.eval()
    with torch.no_grad():
        score = roc_auc_score(y, model(whole_inputs(source)).logits[:, 0].numpy())
    assert score > 0.9 if leaking else 0.4 < score < 0.6


def test_link_pairs_are_symmetric(tmp_path):
    pairs = np.array([[0, 5], [5, 0], [3, 3]])
    graph = ring_graph().replace(y=None, splits=None, pairs=pairs, task=Task.of("link", "binary", 2))
    view = model_store(tmp_path / "links.zarr", graph, TOKENS).view()
    source, model = make_model(view, SMALL)
    model.eval()
    with torch.no_grad():
        whole = model(whole_inputs(source, pairs=pairs))
        batch = model(batch_inputs(source, [0, 3, 5], pairs=pairs))
    assert whole.logits.shape == batch.logits.shape == (3, 1)
    torch.testing.assert_close(whole.logits[0], whole.logits[1])
    with pytest.raises(ModelError, match="needs pairs"):
        model(whole_inputs(source))


def test_explanations(store):
    source, model = make_model(store.view(), SMALL.changed(token_layers=2, node_layers=3))
    model.eval()
    with torch.no_grad():
        plain, told = model(whole_inputs(source)), model(whole_inputs(source), explain=True)
    assert plain.level_deltas is None
    assert told.level_deltas.shape == (4, 3)  # two blocks of two layers; levels 0, 1, 2
    torch.testing.assert_close(told.logits, plain.logits)


def test_evaluation_is_repeatable_and_training_draws(store):
    source, model = make_model(store.view(), SMALL.changed(dropout=0.0, token_dropout=0.2))
    first, second = (model(whole_inputs(source, epoch=0)).logits for _ in range(2))
    assert not torch.equal(first, second)
    model.eval()
    assert torch.equal(*(model(whole_inputs(source)).logits for _ in range(2)))


def test_inputs_that_do_not_fit_the_model_are_named(store, many):
    source, model = make_model(store.view(), SMALL)
    other = InputSource(store.view(), SMALL.changed(encodings="none"))
    for inputs, message in (
        (whole_inputs(other), "made for 5 and 6"),
        (whole_inputs(InputSource(store.view(), SMALL.changed(token_blocks="none"))), "have none"),
        (batch_inputs(source, [1, 2], scan_context=False), "scan_context=True"),
    ):
        with pytest.raises(ModelError, match=message):
            model(inputs)
    small, less = make_model(store.view(m=1), SMALL)
    with pytest.raises(ModelError, match="up to level 2, the model was made for 1"):
        less(whole_inputs(source))
    assert model(whole_inputs(small)).logits.shape == (40, 3)
    _, graph_model = make_model(many.view(), SMALL)
    with pytest.raises(ModelError, match="columns"):
        graph_model(whole_inputs(source))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"widht": 3}, "did you mean 'width'"),
        ({"encoder": "locl"}, "did you mean 'local'"),
        ({"readout": "first"}, "allowed: last, mean, both-ends"),
        ({"mpnn": "gat"}, "allowed: gcn"),
        ({"token_blocks": (3,)}, "layers are 1..2"),
        ({"token_blocks": (1, 1)}, "twice"),
        ({"token_blocks": 0}, "at least 1"),
        ({"token_blocks": "inputs"}, "did you mean 'input'"),
        ({"width": 0}, "at least 1"),
        ({"dropout": 1.0}, r"\[0, 1\)"),
        ({"node_scan": False, "mpnn": "none"}, "node_scan = false leaves .* nothing to do"),
        ({"node_scan": [2], "mpnn": "none"}, r"node_scan = \[2\] leaves .* nothing to do"),
        ({"node_scan": (1, 3)}, "node_scan names layer 3; with node_layers = 2"),
        ({"node_scan": (2, 2)}, "node_scan = .* names a layer twice"),
        ({"scan_backend": "cuda"}, "scan_backend is 'cuda'"),
        ({"expand": 0}, "expand"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        SMALL.changed(**changes)


def test_settings_load_from_flags_and_models_differ():
    def blocks_after(**flags):
        return load_config(ModelConfig, Layer("flags", flags)).blocks_after

    assert blocks_after(token_blocks=[1, 2], node_layers=3, width=32) == (1, 2)
    assert blocks_after(token_blocks=4, node_layers=16) == (4, 8, 12)
    assert blocks_after(token_blocks=4, node_layers=3) == ()
    assert ModelConfig.of("gmn-paper").reads_input_tokens
    assert ModelConfig.of("gmn", width=32).width == 32
    with pytest.raises(ConfigError, match=r"no model 'gmn-papr'; allowed: gmn, .*; did you mean 'gmn-paper'"):
        ModelConfig.of("gmn-papr")
    with pytest.raises(ConfigError, match="model mpnn requires token_blocks = none, but the call sets it to between"):
        ModelConfig.of("mpnn", token_blocks="between")


def test_nodes_are_scanned_in_the_layers_that_are_named(store):
    def scanned(**flags):
        _, model = make_model(store.view(), load_config(ModelConfig, Layer("flags", {"width": 16, **flags})))
        return [number for number, layer in enumerate(model.layers, 1) if layer.scan is not None]

    assert scanned(node_layers=3) == [1, 2, 3]
    assert scanned(node_layers=3, node_scan=[3]) == [3]
    assert scanned(node_layers=3, node_scan=[3, 1]) == [1, 3]
    assert scanned(node_layers=3, node_scan=False) == []


def test_the_example_in_the_documentation_runs(store, monkeypatch):
    example = re.search(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    body = example.group(1)
    lines = [line for line in body.splitlines() if line.strip() and not line.startswith(("import", "from"))]
    assert len(lines) <= 15
    monkeypatch.setattr(TokenStore, "open", lambda _: store)
    scope: dict = {}
    exec(body, scope)
    assert scope["logits"].shape == (40, 3)


def test_every_setting_is_documented():
    text = DOCS.read_text(encoding="utf-8")
    assert [name for name in ModelConfig.__dataclass_fields__ if f"`{name}`" not in text] == []
