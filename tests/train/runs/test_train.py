"""Training: it learns, repeats itself bit for bit, and goes on after an interruption as if there had been none."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gmn_pipeline import Graph, Task, TokenSettings, TokenStore
from gmn_pipeline.errors import ConfigError, GmnError, TrainError
from gmn_train.data.labelled import LabelledData
from gmn_train.runs.checkpoint import Checkpoints
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.predicting.export import evaluate_run, export_predictions, open_best
from gmn_train.runs.start import start_runs
from gmn_train.runs.watching.display import Watcher
from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.request import parse_numbers
from gmn_train.settings.run_settings import TrainConfig
from gmn_train.train import train_step
from tests.stores import ring_graph, write_store
from tests.train.small_runs import SMALL, DieAt, last_weights, many_graphs, prepare, settings_for, train_in


@pytest.fixture
def ring(tmp_path: Path) -> TrainConfig:
    store = write_store(tmp_path / "ring.zarr", ring_graph(60, 60), TokenSettings(2, 3, 2))
    return settings_for(store, epochs=6, checkpoint_seconds=0)


@pytest.fixture
def graphs(tmp_path: Path) -> TrainConfig:
    store = write_store(tmp_path / "graphs.zarr", many_graphs(), TokenSettings(2, 2, 1))
    return settings_for(store, epochs=4, batch_size=3, checkpoint_seconds=0)


def run(config: TrainConfig, path: Path) -> tuple[dict, dict[str, torch.Tensor]]:
    """(summary, last weights) of a run from the beginning."""
    summary = train_in(config, path)
    return summary, last_weights(config, path)


def same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def without_times(rows: list[dict]) -> list[dict]:
    return [{**row, "seconds": 0, "eval_seconds": 0} for row in rows]


def test_it_overfits_a_tiny_store(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.zarr", ring_graph(40, 40), TokenSettings(2, 3, 1))
    model = ModelConfig(width=32, node_layers=2, dropout=0.0, token_dropout=0.0, feature_mask=0.0)
    config = settings_for(store, epochs=120, lr=0.01, weight_decay=0.0, model=model)
    run(config, tmp_path / "run")
    training = prepare(config)
    checkpoints = Checkpoints(RunFolder(tmp_path / "run"), config)
    checkpoints.restore(training.model, training.average, training.optimizer)
    checkpoints.save_best(training.model)
    assert evaluate_run(tmp_path / "run", None)["train"] == 1.0


def test_the_same_settings_give_the_same_bits(ring: TrainConfig, graphs: TrainConfig, tmp_path: Path) -> None:
    for name, config in (("ring", ring), ("graphs", graphs)):
        one, weights = run(config, tmp_path / f"{name}1")
        other, again = run(replace(config, loader_threads=3), tmp_path / f"{name}2")
        assert same_weights(weights, again)
        assert (one["val"], one["test"], one["best_epoch"]) == (other["val"], other["test"], other["best_epoch"])


@pytest.mark.parametrize("kind", ["ring", "graphs"])
def test_interrupted_at_every_step_it_ends_the_same(kind: str, request, tmp_path: Path) -> None:
    config = request.getfixturevalue(kind)
    _, wanted = run(config, tmp_path / "whole")
    folder = RunFolder(tmp_path / "broken")
    folder.create(config)
    sittings = 0
    while folder.summary() is None:
        sittings += 1
        try:
            train_in(config, folder.path, DieAt(2), anew=False)
        except KeyboardInterrupt:
            continue
    assert sittings >= 3
    assert same_weights(last_weights(config, folder.path), wanted)
    assert without_times(folder.metrics()) == without_times(RunFolder(tmp_path / "whole").metrics())


@pytest.mark.parametrize("item", ["graph", "node"])
@pytest.mark.parametrize("kind", ["multiclass", "regression", "multilabel"])
def test_every_task_trains(tmp_path: Path, item: str, kind) -> None:
    graph = many_graphs(item)
    if kind != "multiclass":
        assert graph.y is not None
        y = np.stack([graph.y, 1 - graph.y, graph.y], axis=1).astype(np.float32)  # labels that can be learnt
        graph = graph.replace(y=y, task=Task.of(item, kind, 3))  # type: ignore[arg-type]
    store = write_store(tmp_path / "s.zarr", graph, TokenSettings(2, 2, 1))
    summary = train_in(settings_for(store, epochs=4, lr=0.01, warmup=0, batch_size=5), tmp_path / "run")
    losses = [row["loss"] for row in RunFolder(tmp_path / "run").metrics()]
    assert losses[-1] < losses[0]
    assert summary["metric"] == graph.task.metric  # type: ignore[union-attr]


def test_batch_mode_trains(ring: TrainConfig, tmp_path: Path) -> None:
    model = SMALL.changed(token_blocks="input", token_layers=2)
    config = replace(ring, mode="batch", batch_nodes=7, epochs=10, lr=0.01, warmup=0, model=model)
    assert run(config, tmp_path / "run")[0]["mode"] == "batch"
    losses = [row["loss"] for row in RunFolder(tmp_path / "run").metrics()]
    assert losses[-1] < losses[0]


def test_chunks_give_the_gradients_of_one_pass(tmp_path: Path) -> None:
    """`full` mode in bounded memory is exact, dropout included."""
    store = write_store(tmp_path / "s.zarr", ring_graph(300, 300), TokenSettings(2, 2, 1))
    found = []
    for chunk in (None, 70):
        training = prepare(settings_for(store))
        sampler, model = training.sampler, training.model
        sampler.chunk_nodes = chunk  # type: ignore[attr-defined]
        loaded = sampler.load(sampler.training_steps(0)[0], 0)
        torch.manual_seed(5)
        model.train()
        model(loaded.inputs).logits.square().sum().backward()
        found.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    largest = max(grad.abs().max() for grad in found[0].values())
    for name, grad in found[0].items():  # a bias before a batch norm has no gradient but rounding
        scale = grad.abs().max().clamp(min=1e-3 * largest)
        assert (found[1][name] - grad).abs().max() <= 2e-4 * scale, name


def test_divergence_names_the_place_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    """A target so large that its loss overflows stands in the second batch of the first epoch only."""
    graph = many_graphs()
    y = np.zeros((graph.num_items, 1), np.float32)
    graph = graph.replace(y=y, task=Task.of("graph", "regression", 1))
    store = write_store(tmp_path / "s.zarr", graph, TokenSettings(1, 1, 1))
    settings = {"epochs": 2, "batch_size": 4, "checkpoint_seconds": 0, "scale_targets": False}
    config = settings_for(store, **settings)
    second = prepare(config).sampler.training_steps(0)[1].units
    assert second is not None
    y[second[:2]] = 3e38
    config = settings_for(write_store(tmp_path / "t.zarr", graph.replace(y=y), TokenSettings(1, 1, 1)), **settings)
    with pytest.raises(TrainError, match="the loss became inf in epoch 1, step 2; the last good checkpoint is kept"):
        train_in(config, tmp_path / "run")
    state = Checkpoints(RunFolder(tmp_path / "run"), config).load()
    assert state is not None
    assert state["progress"]["step"] == 1
    assert all(torch.isfinite(t).all() for t in state["model"].values())


def test_a_gradient_that_is_not_finite_never_reaches_a_checkpoint(ring: TrainConfig) -> None:
    """The loss is finite; without the check, the step would write NaN into the weights and the next checkpoint."""

    class Poison(torch.autograd.Function):
        @staticmethod
        def forward(_ctx, x):
            return x.clone()

        @staticmethod
        def backward(_ctx, grad):
            return grad * float("nan")

    training = prepare(replace(ring, clip=0))
    before = {name: tensor.clone() for name, tensor in training.model.named_parameters()}
    training.model.head.register_forward_hook(lambda *arguments: Poison.apply(arguments[-1]))
    loaded = training.sampler.load(training.sampler.training_steps(0)[0], 0)
    with pytest.raises(TrainError, match="the gradient became nan in epoch 3, step 1"):
        train_step(training, loaded, 0.01, (2, 0))
    assert all(torch.equal(tensor, before[name]) for name, tensor in training.model.named_parameters())


def test_early_stopping(ring: TrainConfig, tmp_path: Path) -> None:
    summary, _ = run(replace(ring, epochs=50, patience=2, lr=1e-9), tmp_path / "run")
    assert summary["epochs"] <= summary["best_epoch"] + 3


def test_averaging_over_draws_changes_predictions_but_repeats(ring: TrainConfig, tmp_path: Path) -> None:
    config = settings_for(ring.store, s=1, eval_draws=3, epochs=2)
    one, _ = run(config, tmp_path / "a")
    other, _ = run(config, tmp_path / "b")
    assert one["val"] == other["val"]
    scores = []
    for draws in (1, 3):
        best = open_best(tmp_path / "a")
        object.__setattr__(best.sampler.config, "eval_draws", draws)
        from gmn_train.learning.predictions import predict_items

        scores.append(predict_items(best.sampler, best.model, best.compute, best.sampler.evaluation_steps())[1])
    assert not np.allclose(*scores)


def test_predictions_are_written_and_reread(ring: TrainConfig, tmp_path: Path) -> None:
    import pyarrow.parquet

    run(ring, tmp_path / "run")
    export_predictions(tmp_path / "run", None, tmp_path / "p.npz", embeddings=True)
    with np.load(tmp_path / "p.npz", allow_pickle=False) as found:
        assert found["id"].tolist() == list(range(60))
        assert found["scores"].shape == (60, 3)
        assert found["embedding"].shape == (60, 16)
        np.testing.assert_array_equal(found["prediction"], found["scores"].argmax(1))
        export_predictions(tmp_path / "run", None, tmp_path / "p.parquet", embeddings=False)
        table = pyarrow.parquet.read_table(tmp_path / "p.parquet")
        np.testing.assert_allclose(table["probability 1"].to_numpy(), found["probability 1"])
    with pytest.raises(TrainError, match="must be one of"):
        export_predictions(tmp_path / "run", None, tmp_path / "p.txt", embeddings=False)


def test_a_checkpoint_that_does_not_fit(ring: TrainConfig, graphs: TrainConfig, tmp_path: Path) -> None:
    run(ring, tmp_path / "run")
    with pytest.raises(GmnError, match="has a graph multiclass task; the model was trained for node multiclass"):
        open_best(tmp_path / "run", graphs.store)
    with pytest.raises(TrainError, match="made from another store"):
        train_in(settings_for(graphs.store), tmp_path / "run", anew=False)


def test_mistakes_are_named(ring: TrainConfig, tmp_path: Path) -> None:
    def open_data(config: TrainConfig) -> None:
        LabelledData.open(TokenStore.open(config.store), config)

    with pytest.raises(ConfigError, match=r"split 9 does not exist; the store has splits 0\.\.1"):
        open_data(replace(ring, split=9))
    with pytest.raises(ConfigError, match="the store has m=2"):
        settings_for(ring.store, m=5)
    with pytest.raises(ConfigError, match="mode graphs needs a store of many graphs"):
        settings_for(ring.store, mode="graphs")
    bare = write_store(tmp_path / "bare.zarr", Graph.from_edges([[0, 1]]), TokenSettings(1, 1, 1))
    with pytest.raises(TrainError, match="has no labels"):
        open_data(settings_for(bare))
    with pytest.raises(TrainError, match="not a run folder"):
        RunFolder(tmp_path).config()
    with pytest.raises(ConfigError, match="numbers and ranges"):
        parse_numbers("1,x", "seeds")
    assert parse_numbers("0,2,4-6", "seeds") == [0, 2, 4, 5, 6]
    assert parse_numbers(None, "seeds") == []


def test_a_finished_run_is_found_and_other_settings_are_not_mixed_in(ring: TrainConfig, tmp_path: Path) -> None:
    config, place = replace(ring, epochs=2), {"run_dir": tmp_path / "run"}
    first = start_runs(config, Watcher(), **place)[0]
    again = start_runs(config, Watcher(), **place)[0]
    assert (first.existed, again.existed) == (False, True)
    assert again.summary == first.summary
    longer = replace(config, epochs=3)
    with pytest.raises(TrainError, match=r"other settings \(epochs is 2, not 3\)"):
        start_runs(longer, Watcher(), **place)
    assert start_runs(longer, Watcher(), **place, force=True)[0].summary["epochs"] == 3
    json.loads((tmp_path / "run" / "summary.json").read_text())
