"""Models by name: each trains in the same frame, sees what it should and nothing else."""

import numpy as np
import pytest
import torch
from torch import nn

from gmn_pipeline import Graph, Task, TokenSettings, TokenStore
from gmn_pipeline.errors import ConfigError
from gmn_train.model import Baseline, InputSource, ModelConfig, make_graph_model, whole_inputs
from gmn_train.model.tables import BRANCHES, MODELS, Branch
from tests.stores import ring_graph
from tests.train.model_stores import model_store
from tests.train.small_runs import last_weights, prepare, settings_for, train_in

SMALL = {"width": 16, "states": 4, "node_layers": 2, "feature_mask": 0.0}
BASELINES = ("mlp", "gcn", "gatedgcn", "gin", "gps", "gps-performer")


def two_graphs(edges_of_second: list[list[int]]) -> Graph:
    """Two graphs of 4 nodes; the first is a path."""
    edges = np.array([[0, 1], [1, 2], [2, 3], *[[a + 4, b + 4] for a, b in edges_of_second]])
    x = np.random.default_rng(0).random((8, 3)).astype(np.float32)
    return Graph.from_edges(
        edges, 8, x=x, graph_ptr=np.array([0, 4, 8]), y=np.array([0, 1]), splits=np.array([1, 2]),
        task=Task.of("graph", "multiclass", 2),
    )  # fmt: skip


def logits(path, graph, name, **changes):
    """Evaluation logits of a freshly drawn model."""
    config = ModelConfig.of(name, **{**SMALL, "log_degree": False, **changes})
    source = InputSource(model_store(path, graph, TokenSettings(1, 2, 1)).view(), config)
    torch.manual_seed(0)
    model = make_graph_model(config, source.facts).eval()
    with torch.inference_mode():
        return model(whole_inputs(source)).logits


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    graph = ring_graph(60, 60, edge_features=True)
    path = tmp_path_factory.mktemp("s") / "ring.zarr"
    return model_store(path, graph, TokenSettings(2, 3, 2), laplacian=3, orderings=("degree", "pagerank")).path


@pytest.mark.parametrize("name", MODELS)
def test_every_model_trains_and_all_its_weights_move(store, tmp_path, name):
    config = settings_for(store, epochs=3, model=ModelConfig.of(name, **SMALL))
    summary = train_in(config, tmp_path / "run")
    assert summary["model"] == name
    before = dict(prepare(config).model.named_parameters())
    after = last_weights(config, tmp_path / "run")
    still = [key for key, value in before.items() if torch.equal(value, after[key])]
    # Read at its own position, the last, a node's backward scan has one step: no state to decay yet.
    still = [key for key in still if not ("block" in key and key.endswith("backward_branch.A_log"))]
    assert not still, f"{name}: no gradient reaches {still}"


@pytest.mark.parametrize("name", BASELINES)
def test_graphs_of_a_batch_do_not_see_each_other(tmp_path, name):
    """Attention and messages stay inside a graph: changing the second leaves the first as it was."""
    one = logits(tmp_path / "a.zarr", two_graphs([[0, 1]]), name)
    other = logits(tmp_path / "b.zarr", two_graphs([[0, 1], [1, 2], [2, 3], [3, 0]]), name)
    torch.testing.assert_close(one[0], other[0])
    assert torch.equal(one[1], other[1]) == (name == "mlp"), "an MLP sees no edges, all others do"


def test_gps_sees_beyond_its_messages(tmp_path):
    """One layer of full attention reaches a node that no path of that length does; one of message passing does not."""
    graph = two_graphs([[0, 1]])
    far = graph.x.copy()
    far[3] += 1
    changed = Graph.from_csr(
        graph.indptr, graph.indices, x=far, graph_ptr=graph.graph_ptr, y=graph.y, splits=graph.splits, task=graph.task
    )
    for name, sees in (("gps", True), ("gcn", False)):
        config = ModelConfig.of(name, **{**SMALL, "node_layers": 1, "log_degree": False})
        states = []
        for number, g in enumerate((graph, changed)):
            source = InputSource(
                model_store(tmp_path / f"{name}{number}.zarr", g, TokenSettings(1, 2, 1)).view(), config
            )
            torch.manual_seed(0)
            model = Baseline(config, source.facts).eval()
            model.predict = lambda h, _: h
            states.append(model(whole_inputs(source)))
        assert torch.equal(states[0][0], states[1][0]) != sees


def test_mistakes_are_named():
    with pytest.raises(ConfigError, match="did you mean 'gatedgcn'"):
        ModelConfig.of("gatedgnc")
    with pytest.raises(ConfigError, match="token_layers is 0"):
        ModelConfig(token_layers=0)
    with pytest.raises(ConfigError, match="do not divide width 18"):
        ModelConfig.of("gps", width=18)


def test_a_branch_from_outside_serves_gps_where_it_says_how(store, monkeypatch):
    class Sum(nn.Module):
        def forward(self, x, edge_index, edge_states=None):  # noqa: ARG002
            return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])

        def reset_parameters(self):
            pass

    monkeypatch.setattr(BRANCHES, "_entries", dict(BRANCHES))
    BRANCHES.add(Branch("alone", lambda *_: Sum()))
    BRANCHES.add(Branch("both", lambda *_: Sum(), convolution=lambda *_: Sum()))
    with pytest.raises(ConfigError, match="no mpnn = alone; set it to one of none, gcn, gatedgcn, gine, both"):
        ModelConfig.of("gps", mpnn="alone", **SMALL)
    config = ModelConfig.of("gps", mpnn="both", **SMALL)
    source = InputSource(TokenStore.open(store).view(), config)
    assert torch.isfinite(make_graph_model(config, source.facts)(whole_inputs(source)).logits).all()
