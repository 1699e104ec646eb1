"""Training: it learns, repeats itself bit for bit, and goes on after an interruption as if there had been none."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gmn_pipeline import Graph, Task, TokenSettings
from gmn_pipeline.errors import ConfigError, GmnError, TrainError
from gmn_train import train as training
from gmn_train.data.session import Session
from gmn_train.runs.display import Display
from gmn_train.runs.export import evaluate_run, export_predictions, open_best
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.start import parse_numbers, start_runs
from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.train_config import TrainConfig
from tests.stores import ring_graph, write_store

SMALL = ModelConfig.preset("default", width=16, node_layers=2, states=4, dropout=0.1)


def many_graphs(level: str = "graph", count: int = 24) -> Graph:
    """Rings and paths to tell apart, or their nodes by degree."""
    edges, sizes = [], []
    for g in range(count):
        n, first = 5 + g % 4, sum(sizes)
        edges += [[first + i, first + i + 1] for i in range(n - 1)] + ([[first + n - 1, first]] if g % 2 else [])
        sizes.append(n)
    items = count if level == "graph" else sum(sizes)
    y = np.arange(count) % 2 if level == "graph" else np.concatenate([np.arange(n) == 0 for n in sizes]).astype(int)
    splits = np.tile([1, 1, 2, 3], items)[:items]
    if level == "node":
        splits = np.repeat(np.tile([1, 1, 2, 3], count)[:count], sizes)
    return Graph.from_edges(
        np.array(edges), sum(sizes), x=np.ones((sum(sizes), 1)), y=y, splits=splits,
        graph_ptr=np.concatenate([[0], np.cumsum(sizes)]), task=Task.of(level, "multiclass", 2),
    )  # fmt: skip


@pytest.fixture
def ring(tmp_path: Path) -> TrainConfig:
    store = write_store(tmp_path / "ring.zarr", ring_graph(60, 60), TokenSettings(2, 3, 2))
    return TrainConfig(store=store.path, epochs=6, model=SMALL, checkpoint_seconds=0)


@pytest.fixture
def graphs(tmp_path: Path) -> TrainConfig:
    store = write_store(tmp_path / "graphs.zarr", many_graphs(), TokenSettings(2, 2, 1))
    return TrainConfig(store=store.path, epochs=4, model=SMALL, batch_size=3, checkpoint_seconds=0)


def run(config: TrainConfig, path: Path) -> tuple[dict, dict[str, torch.Tensor]]:
    """(summary, last weights) of a run from the beginning."""
    folder = RunFolder(path)
    folder.create(config)
    summary = training.train(config, folder, Display("nothing"))
    state = folder.load_last()
    assert state is not None
    return summary, state["model"]


def same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def test_it_overfits_a_tiny_store(tmp_path: Path) -> None:
    graph = ring_graph(40, 40)
    store = write_store(tmp_path / "s.zarr", graph, TokenSettings(2, 3, 1))
    model = ModelConfig.preset("default", width=32, node_layers=2, dropout=0.0, token_dropout=0.0, feature_mask=0.0)
    config = TrainConfig(store=store.path, epochs=120, lr=0.01, weight_decay=0.0, model=model)
    run(config, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    state = folder.load_last()
    assert state is not None
    folder.save_best(state["model"])
    assert evaluate_run(tmp_path / "run", None)["train"] == 1.0


def test_the_same_settings_give_the_same_bits(ring: TrainConfig, graphs: TrainConfig, tmp_path: Path) -> None:
    for name, config in (("ring", ring), ("graphs", graphs)):
        one, weights = run(config, tmp_path / f"{name}1")
        other, again = run(replace(config, loader_threads=3), tmp_path / f"{name}2")
        assert same_weights(weights, again)
        assert (one["val"], one["test"], one["best_epoch"]) == (other["val"], other["test"], other["best_epoch"])


@pytest.mark.parametrize("kind", ["ring", "graphs"])
def test_interrupted_at_every_step_it_ends_the_same(kind: str, request, tmp_path: Path, monkeypatch) -> None:
    config = request.getfixturevalue(kind)
    _, wanted = run(config, tmp_path / "whole")
    rows = [{**row, "seconds": 0, "eval_seconds": 0} for row in RunFolder(tmp_path / "whole").metrics()]
    folder = RunFolder(tmp_path / "broken")
    folder.create(config)
    real = training._train_step
    sittings = 0
    while folder.summary() is None:
        steps = iter(range(2))

        def step_or_die(*arguments, steps=steps):
            if next(steps, None) is None:
                raise KeyboardInterrupt
            return real(*arguments)

        monkeypatch.setattr(training, "_train_step", step_or_die)
        sittings += 1
        try:
            training.train(config, folder, Display("nothing"))
        except KeyboardInterrupt:
            continue
    assert sittings >= 3
    state = folder.load_last()
    assert state is not None
    assert same_weights(state["model"], wanted)
    assert [{**row, "seconds": 0, "eval_seconds": 0} for row in folder.metrics()] == rows


@pytest.mark.parametrize("level", ["graph", "node"])
@pytest.mark.parametrize("kind", ["multiclass", "regression", "multilabel"])
def test_every_task_trains(tmp_path: Path, level: str, kind) -> None:
    graph = many_graphs(level)
    if kind != "multiclass":
        y = np.random.default_rng(0).integers(0, 2, (graph.num_items, 3)).astype(np.float32)
        graph = graph.replace(y=y, task=Task.of(level, kind, 3))  # type: ignore[arg-type]
    store = write_store(tmp_path / "s.zarr", graph, TokenSettings(2, 2, 1))
    summary, _ = run(TrainConfig(store=store.path, epochs=2, model=SMALL, batch_size=5), tmp_path / "run")
    assert np.isfinite(summary["val"])


def test_link_tasks_train(tmp_path: Path) -> None:
    graph = ring_graph(40, 20)
    pairs = np.random.default_rng(0).integers(0, 40, (60, 2))
    graph = Graph(graph.indptr, graph.indices, x=graph.x, pairs=pairs, y=np.arange(60) % 2,
                  splits=np.arange(60) % 3 + 1, task=Task.of("link", "binary", 2)).check()  # fmt: skip
    store = write_store(tmp_path / "s.zarr", graph, TokenSettings(2, 2, 1))
    summary, _ = run(TrainConfig(store=store.path, epochs=2, model=SMALL), tmp_path / "run")
    assert np.isfinite(summary["test"])


def test_batch_mode_trains(ring: TrainConfig, tmp_path: Path) -> None:
    model = SMALL.changed(token_blocks="input", token_layers=2)
    summary, _ = run(replace(ring, mode="batch", batch_nodes=7, model=model), tmp_path / "run")
    assert summary["mode"] == "batch"
    assert np.isfinite(summary["val"])


def test_chunks_give_the_gradients_of_one_pass(tmp_path: Path) -> None:
    """`full` mode in bounded memory is exact, dropout included."""
    store = write_store(tmp_path / "s.zarr", ring_graph(300, 300), TokenSettings(2, 2, 1))
    found = []
    for chunk in (None, 70):
        session = Session(TrainConfig(store=store.path, model=SMALL))
        session.chunk_nodes = chunk
        model = training.make_model(session, torch.device("cpu"))
        loaded = session.load(session.training_steps(0)[0], 0)
        torch.manual_seed(5)
        model.train()
        model(loaded.inputs).logits.square().sum().backward()
        found.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    largest = max(grad.abs().max() for grad in found[0].values())
    for name, grad in found[0].items():  # a bias before a batch norm has no gradient but rounding
        scale = grad.abs().max().clamp(min=1e-3 * largest)
        assert (found[1][name] - grad).abs().max() <= 2e-4 * scale, name


def test_nan_stops_with_the_place_and_keeps_the_checkpoint(ring: TrainConfig, tmp_path: Path, monkeypatch) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.create(ring)
    real = training.task_loss
    calls = iter(range(100))

    def poisoned(*arguments):
        return real(*arguments) * (float("nan") if next(calls) >= 3 else 1.0)

    monkeypatch.setattr(training, "task_loss", poisoned)
    with pytest.raises(TrainError, match="the loss became nan in epoch 3, step 0"):
        training.train(ring, folder, Display("nothing"))
    state = folder.load_last()
    assert state is not None
    assert state["progress"]["epoch"] == 3
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

    session = Session(replace(ring, clip=0))
    model = training.make_model(session, torch.device("cpu"))
    before = {name: tensor.clone() for name, tensor in model.named_parameters()}
    model.head.register_forward_hook(lambda *arguments: Poison.apply(arguments[-1]))
    optimizer = training.make_optimizer(model, session.config)
    loaded = session.load(session.training_steps(0)[0], 0)
    with pytest.raises(TrainError, match="the gradient became nan in epoch 2, step 0"):
        training._train_step(model, optimizer, session, loaded, None, torch.device("cpu"), (2, 0))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.named_parameters())


def test_early_stopping(ring: TrainConfig, tmp_path: Path) -> None:
    summary, _ = run(replace(ring, epochs=50, patience=2, lr=1e-9), tmp_path / "run")
    assert summary["epochs"] <= summary["best_epoch"] + 3


def test_averaging_over_draws_changes_predictions_but_repeats(ring: TrainConfig, tmp_path: Path) -> None:
    config = replace(ring, s=1, eval_draws=3, epochs=2)
    one, _ = run(config, tmp_path / "a")
    other, _ = run(config, tmp_path / "b")
    assert one["val"] == other["val"]


def test_predictions_are_written_and_reread(ring: TrainConfig, tmp_path: Path) -> None:
    import pyarrow.parquet

    run(ring, tmp_path / "run")
    export_predictions(tmp_path / "run", None, tmp_path / "p.npz", embeddings=True)
    with np.load(tmp_path / "p.npz", allow_pickle=False) as found:
        assert found["item"].tolist() == list(range(60))
        assert found["scores"].shape == (60, 3)
        assert found["embedding"].shape == (60, 16)
        np.testing.assert_array_equal(found["prediction"], found["scores"].argmax(1))
        export_predictions(tmp_path / "run", None, tmp_path / "p.parquet", embeddings=False)
        table = pyarrow.parquet.read_table(tmp_path / "p.parquet")
        np.testing.assert_allclose(np.stack(table["scores"].to_numpy()), found["scores"])
    with pytest.raises(TrainError, match=r"\.npz or \.parquet"):
        export_predictions(tmp_path / "run", None, tmp_path / "p.csv", embeddings=False)


def test_a_checkpoint_that_does_not_fit(ring: TrainConfig, graphs: TrainConfig, tmp_path: Path) -> None:
    run(ring, tmp_path / "run")
    with pytest.raises(GmnError, match="does not fit"):
        open_best(tmp_path / "run", graphs.store)
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(TrainError, match="made from another store"):
        training.train(replace(ring, store=graphs.store), folder, Display("nothing"))


def test_mistakes_are_named(ring: TrainConfig, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"split 9 does not exist; the store has splits 0\.\.1"):
        Session(replace(ring, split=9))
    with pytest.raises(ConfigError, match="the store has m=2"):
        Session(replace(ring, m=5))
    bare = Graph.from_edges([[0, 1]])
    with pytest.raises(TrainError, match="has no labels"):
        Session(replace(ring, store=write_store(tmp_path / "bare.zarr", bare, TokenSettings(1, 1, 1)).path))
    with pytest.raises(TrainError, match="not a run folder"):
        RunFolder(tmp_path).config()
    with pytest.raises(ConfigError, match="numbers and ranges"):
        parse_numbers("1,x", "seeds")
    assert parse_numbers("0,2,4-6", "seeds") == [0, 2, 4, 5, 6]


def test_a_finished_run_is_found_and_other_settings_are_not_mixed_in(ring: TrainConfig, tmp_path: Path) -> None:
    config = replace(ring, run_dir=tmp_path / "run", epochs=2)
    first = start_runs(config, [0], [0], Display("nothing"))[0]
    again = start_runs(config, [0], [0], Display("nothing"))[0]
    assert (first.found, again.found) == (False, True)
    assert again.summary == first.summary
    with pytest.raises(TrainError, match="run with other settings"):
        start_runs(replace(config, epochs=3), [0], [0], Display("nothing"))
    assert start_runs(replace(config, epochs=3, force=True), [0], [0], Display("nothing"))[0].summary["epochs"] == 3
    json.loads((tmp_path / "run" / "summary.json").read_text())
