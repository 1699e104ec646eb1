"""Link tasks from store to report, in every mode, and the mean reciprocal rank."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gmn_pipeline import Graph, Task, TokenSettings
from gmn_pipeline.counter_random import Purpose, child_keys, key_path
from gmn_pipeline.errors import TrainError
from gmn_train.data.labelled import LabelledData
from gmn_train.learning import link_ranking
from gmn_train.learning.evaluation import evaluate_parts
from gmn_train.learning.link_ranking import candidate_nodes, rank_parts
from gmn_train.learning.predictions import predict_items
from gmn_train.report import write_report
from gmn_train.runs.predicting.export import evaluate_run, export_predictions
from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.run_settings import TrainConfig
from tests.reference.link_ranking import reciprocal_ranks
from tests.stores import write_store
from tests.train.small_runs import prepare, settings_for, train_in

SMALL = ModelConfig(width=16, node_layers=2, states=4, dropout=0.0, token_blocks="input")
MODES = ["full", "batch", "graphs"]


pytestmark = pytest.mark.usefixtures("one_thread")


def link_graph(mode: str, metric: str = "mrr") -> Graph:
    """Nodes of two kinds, told by their features; nodes of one kind are linked. One graph, or six small ones."""
    rng = np.random.default_rng(1)
    sizes = [8, 9, 10, 11, 12, 7] if mode == "graphs" else [60]
    edges, pairs, y, first = [], [], [], 0
    kind = rng.integers(0, 2, sum(sizes))
    for n in sizes:
        edges += [[first + i, first + (i + 1) % n] for i in range(n)]
        drawn = np.unique(rng.integers(first, first + n, (5 * n, 2)), axis=0)
        drawn = rng.permutation(drawn[drawn[:, 0] != drawn[:, 1]])[: 3 * n]
        pairs.append(drawn)
        y.append((kind[drawn[:, 0]] == kind[drawn[:, 1]]).astype(np.int64))
        first += n
    joined, labels = np.concatenate(pairs), np.concatenate(y)
    order = rng.permutation(len(joined))  # pairs of one graph need not stand together
    base = Graph.from_edges(np.array(edges), sum(sizes))
    return Graph(
        base.indptr,
        base.indices,
        x=np.stack([kind, 1 - kind], 1) + rng.normal(size=(sum(sizes), 2)).astype(np.float32) * 0.1,
        pairs=joined[order],
        y=labels[order],
        splits=rng.integers(1, 4, len(joined)),
        graph_ptr=np.append(0, np.cumsum(sizes)) if mode == "graphs" else None,
        task=Task.of("link", "binary", 2, metric),  # type: ignore[arg-type]
    ).check()


def link_config(path: Path, mode: str, metric: str = "mrr") -> TrainConfig:
    store = write_store(path / f"{mode}-{metric}.zarr", link_graph(mode, metric), TokenSettings(2, 2, 1))
    sizes = {"batch_nodes": 20, "batch_size": 2, "mode": mode}
    return settings_for(store, epochs=3, model=SMALL, checkpoint_seconds=0, **sizes)


@pytest.mark.parametrize("metric", ["mrr", "roc_auc"])
@pytest.mark.parametrize("mode", MODES)
def test_from_store_to_report(mode: str, metric: str, tmp_path: Path) -> None:
    config = link_config(tmp_path, mode, metric)
    summary = train_in(config, tmp_path / "run")
    assert summary["mode"] == mode
    found = evaluate_run(tmp_path / "run", None)
    assert found["val"] == pytest.approx(summary["val"], abs=1e-6)
    assert 0 < found["test"] <= 1
    written = export_predictions(tmp_path / "run", None, tmp_path / "p.npz", embeddings=False)
    graph = link_graph(mode, metric)
    assert graph.pairs is not None
    with np.load(tmp_path / "p.npz") as columns:
        assert np.array_equal(np.stack([columns["src"], columns["dst"]], 1), graph.pairs)
    assert written["items"] == len(graph.pairs)
    page = write_report([tmp_path / "run"], None).read_text()
    assert ("MRR" if metric == "mrr" else "ROC AUC") in page
    assert "ROC curve" in page


@pytest.mark.parametrize(("mode", "epochs"), [("full", 25), ("graphs", 15), ("batch", 8)])
def test_it_learns_which_nodes_go_together(mode: str, epochs: int, tmp_path: Path) -> None:
    config = replace(link_config(tmp_path, mode, "roc_auc"), epochs=epochs, lr=0.01, warmup=2, eval_every=5)
    assert train_in(config, tmp_path / "run")["test"] > 0.8


@pytest.mark.parametrize("mode", MODES)
def test_steps_hold_both_ends_and_every_pair_once(mode: str, tmp_path: Path) -> None:
    sampler = prepare(link_config(tmp_path, mode)).sampler
    pairs, y, train = sampler.data.graph.pairs, sampler.data.graph.y, sampler.data.items["train"]
    assert pairs is not None
    assert y is not None
    for steps, wanted in ((sampler.training_steps(0), train), (sampler.evaluation_steps(), None)):
        seen = []
        for step in steps:
            loaded = sampler.load(step, 0)
            ids = loaded.inputs.node_ids[: loaded.inputs.targets].numpy()
            assert loaded.inputs.pairs is not None
            np.testing.assert_array_equal(ids[loaded.inputs.pairs.numpy()], pairs[loaded.items])
            assert loaded.y is not None
            np.testing.assert_array_equal(loaded.y.numpy(), y[loaded.items])
            assert mode != "batch" or len(ids) <= 20
            seen.append(loaded.items)
        together = np.sort(np.concatenate(seen))
        assert len(np.unique(together)) == len(together)
        assert np.isin(np.arange(len(pairs)) if wanted is None else wanted, together).all()


@pytest.mark.parametrize("mode", MODES)
def test_ranks_equal_those_of_the_definition(mode: str, tmp_path: Path, monkeypatch) -> None:
    """With scores that often tie, and slabs so small that positives are cut into many."""
    monkeypatch.setattr(link_ranking, "PAIRS_AT_ONCE", 70)
    monkeypatch.setattr(
        link_ranking.NodeStates, "score", lambda _states, _model, pairs: (pairs[:, 0] * 7 + pairs[:, 1] * 13) % 11 * 1.0
    )
    training = prepare(link_config(tmp_path, mode))
    data = training.sampler.data
    graph, borders = data.graph, data.source.graph_ptr

    def candidates(item: int) -> range:
        assert graph.pairs is not None
        g = int(np.searchsorted(borders, graph.pairs[item, 0], side="right")) - 1
        return range(int(borders[g]), int(borders[g + 1]))

    def score(u: int, v: int) -> float:
        return (u * 7 + v * 13) % 11

    expected = {p: np.mean(reciprocal_ranks(graph, data.items[p], score, candidates)) for p in ("val", "test")}
    found = rank_parts(training.sampler, training.model, training.compute, ("val", "test"))
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("mode", ["full", "graphs"])
def test_candidates_are_scored_as_pairs_are(mode: str, tmp_path: Path) -> None:
    """Averaged over two draws of repeats, as predictions are."""
    training = prepare(replace(link_config(tmp_path, mode), eval_draws=2))
    parts = training.sampler, training.model, training.compute
    graph = training.sampler.data.graph
    items, scores, _ = predict_items(*parts, training.sampler.evaluation_steps())
    assert graph.pairs is not None
    with torch.inference_mode():
        for states in link_ranking.node_states(*parts, np.arange(graph.num_items)):
            here = np.isin(graph.pairs[items, 0], states.ids)
            found = states.score(training.model, graph.pairs[items[here]])
            np.testing.assert_allclose(found, scores[here, 0], rtol=1e-4, atol=1e-6)


def test_equal_scores_share_the_mean_rank(tmp_path: Path) -> None:
    training = prepare(link_config(tmp_path, "full"))
    data = training.sampler.data
    for parameter in training.model.head.parameters():
        torch.nn.init.zeros_(parameter)

    def candidates(_: int) -> range:
        return range(60)

    expected = np.mean(reciprocal_ranks(data.graph, data.items["val"], lambda *_: 0.0, candidates))
    found = evaluate_parts(training.sampler, training.model, training.compute, ("val",))
    assert found["val"] == pytest.approx(expected)


def test_of_large_graphs_candidates_are_drawn(monkeypatch) -> None:
    monkeypatch.setattr(link_ranking, "MOST_CANDIDATES", 5)
    items, firsts, sizes = np.array([7, 3]), np.array([100, 20]), np.array([50, 4])
    owner, nodes = candidate_nodes(items, firsts, sizes)
    assert owner.tolist() == [0] * 5 + [1] * 4
    assert nodes[5:].tolist() == [20, 21, 22, 23]  # small: all of them
    bits = child_keys(key_path(0, Purpose.CANDIDATES, 7), 5)
    assert nodes[:5].tolist() == [100 + int(b) * 50 // 2**64 for b in bits]
    again = candidate_nodes(items[:1], firsts[:1], sizes[:1])[1]  # whatever is ranked beside it
    assert again.tolist() == nodes[:5].tolist()


def test_a_part_without_positives_has_no_rank(tmp_path: Path) -> None:
    training = prepare(link_config(tmp_path, "full"))
    data = training.sampler.data
    assert data.graph.y is not None
    data.items["val"] = np.flatnonzero(data.graph.y == 0)
    assert np.isnan(rank_parts(training.sampler, training.model, training.compute, ("val",))["val"])


def test_mrr_of_nodes_is_refused(tmp_path: Path) -> None:
    graph = Graph.from_edges(
        [[0, 1], [1, 2]], 3, y=[0, 1, 1], splits=[1, 2, 3], task=Task.of("node", "binary", 2, "mrr")
    )
    store = write_store(tmp_path / "s.zarr", graph, TokenSettings(1, 1, 1))
    with pytest.raises(TrainError, match="is for links only"):
        LabelledData.open(store, settings_for(store))
