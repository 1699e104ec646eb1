"""What a person sees of a run: its pace, its lines in a log, its estimate, and how it ends when told to."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gmn_pipeline import Graph, Task, TokenSettings
from gmn_pipeline.console.compile_notice import NOTICE, tell_compilation
from gmn_pipeline.errors import StoppedError
from gmn_pipeline.store.files.manifest_file import read_manifest
from gmn_train.data.unread import unread_parts
from gmn_train.runs.start import plan_run
from gmn_train.runs.watching.display import Display, Watcher
from gmn_train.runs.watching.estimate import FEW_NODES, estimate_run, relative_size
from gmn_train.runs.watching.pace import Pace, duration_text, epoch_text
from gmn_train.settings.model_settings import ModelConfig
from tests.stores import write_store
from tests.train.small_runs import DieAt, last_weights, many_graphs, prepare, settings_for, train_in


@pytest.fixture(scope="module")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Any:
    store = write_store(tmp_path_factory.mktemp("s") / "rings.zarr", many_graphs(), TokenSettings(2, 2, 1))
    return settings_for(store, epochs=3, batch_size=4, checkpoint_seconds=1e9)


class Told(Display):
    """A display in a log that keeps its lines."""

    def __init__(self, log_seconds: float = 30.0) -> None:
        super().__init__("lines", log_seconds=log_seconds)
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)
        super().say(message)


def test_the_time_left_follows_epochs_and_leaves_out_the_compiling_one() -> None:
    now = [0.0]
    pace = Pace(10, clock=lambda: now[0])
    assert pace.left() is None
    pace.expect(7.0)
    assert pace.left() == 70.0
    pace.step(0, 1)
    now[0] = 100.0
    pace.epoch()
    assert pace.left() == 900.0  # all that is known
    for _ in range(2):
        pace.step(0, 1)
        now[0] += 40.0
        pace.epoch()
    assert pace.left() == 7 * 40.0
    now[0] += 30.0
    assert pace.left() == 6 * 40.0 + 10.0


@pytest.mark.parametrize("first", [0, 4])  # from the beginning, or resumed within an epoch
def test_within_a_first_epoch_the_time_left_follows_steps(first: int) -> None:
    now = [0.0]
    pace = Pace(2, clock=lambda: now[0])
    for step, seconds in enumerate((60.0, 2.0, 2.0)):
        pace.step(first + step, 10)
        now[0] += seconds
    pace.step(first + 3, 10)
    assert pace.seconds_per_epoch == 20.0
    pace.epoch()
    assert pace.seconds_per_epoch == (64.0 if first == 0 else 20.0)


@pytest.mark.parametrize(("seconds", "text"), [(8.4, "8 s"), (200, "3 min"), (7500, "2 h 05 min"), (274000, "3 d 4 h")])
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.0834, "0.083 s"), (8.21, "8.2 s"), (9.97, "10 s"), (150, "2 min")])
def test_short_epochs_have_two_digits(seconds: float, text: str) -> None:
    assert epoch_text(seconds) == text


def test_a_log_has_the_first_epoch_the_last_and_an_estimate(rings: Any, tmp_path: Path) -> None:
    told = Told()
    train_in(rings, tmp_path / "run", told)
    assert [line.split("  ")[0] for line in told.lines if line.startswith("epoch")] == ["epoch 1/3", "epoch 3/3"]
    assert any(line.startswith("estimate: about") for line in told.lines)
    assert " left" in next(line for line in told.lines if line.startswith("epoch 1/3"))
    often = Told(log_seconds=0.0)
    train_in(rings, tmp_path / "often", often)
    assert any(line.startswith("epoch 2/3, step 2/3") for line in often.lines)
    assert any(line.startswith("epoch 2/3, evaluating") for line in often.lines)


def test_an_estimate_changes_no_weight(rings: Any, tmp_path: Path) -> None:
    for name, watcher in (("with", Told()), ("without", Watcher())):
        train_in(rings, tmp_path / name, watcher)
    one, other = (last_weights(rings, tmp_path / name) for name in ("with", "without"))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_whichever_step_is_timed_it_stands_for_the_mean_of_the_epoch(tmp_path: Path) -> None:
    """The first step may hold small graphs: the time of an epoch was told as half of what it was."""
    sizes = np.array([5, 9, 40, 6, 120, 7, 30, 8, 60, 5, 11, 90])
    ends = np.cumsum(sizes)
    edges = [(v, v + 1) for v in range(ends[-1] - 1) if v + 1 not in ends]
    graph = Graph.from_edges(
        np.array(edges),
        int(ends[-1]),
        x=np.ones((ends[-1], 2), np.float32),
        y=np.arange(12) % 2,
        graph_ptr=np.concatenate([[0], ends]),
        splits=np.array([[0] * 8 + [1, 1, 2, 2]]) + 1,
        task=Task.of("graph", "multiclass", 2),
    )
    store = write_store(tmp_path / "s.zarr", graph, TokenSettings(1, 1, 1))
    sampler = prepare(settings_for(store, epochs=2, batch_size=3)).sampler
    steps = sampler.training_steps(0)
    nodes = [int(sizes[step.units].sum()) for step in steps]
    assert len(set(nodes)) > 1
    for step, size in zip(steps, nodes, strict=True):
        scale = relative_size(sampler, step, sampler.load(step, 0))
        assert scale * size * len(steps) == pytest.approx(sum(nodes))


def test_a_large_graph_is_estimated_from_some_of_its_nodes(tmp_path: Path) -> None:
    n = 2 * FEW_NODES
    graph = Graph.from_edges(
        np.stack([np.arange(n), (np.arange(n) + 1) % n], 1), n, x=np.ones((n, 2)), y=np.arange(n) % 2,
        splits=np.tile([1, 1, 2, 3], n // 4), task=Task.of("node", "multiclass", 2),
    )  # fmt: skip
    config = settings_for(write_store(tmp_path / "ring.zarr", graph, TokenSettings(1, 1, 1)), epochs=10)
    estimate = estimate_run(prepare(config))
    assert estimate is not None
    assert estimate.seconds == pytest.approx(10 * estimate.seconds_per_epoch)
    assert 1e8 < estimate.memory_bytes < 1e11


def test_a_dry_run_writes_nothing(rings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_run(rings, Watcher())
    assert plan.estimate is not None
    assert plan.header.parameters > 0
    assert list(tmp_path.iterdir()) == []


def test_early_stopping_is_told(rings: Any, tmp_path: Path) -> None:
    told = Told()
    config = replace(rings, epochs=50, patience=2, lr=1e-12)
    summary = train_in(config, tmp_path / "run", told)
    assert summary["epochs"] < 50
    assert any(line.startswith(f"stopped early after epoch {summary['epochs']}") for line in told.lines)


def test_a_resumed_bar_starts_where_the_run_is(rings: Any, tmp_path: Path) -> None:
    config = replace(rings, checkpoint_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        train_in(config, tmp_path / "run", DieAt(4))
    first: list[int] = []

    class Seen(Watcher):
        def start(self, header: Any) -> None:
            first.append(header.first_epoch)

        def step(self, epoch: int, step: int, steps: int) -> None:  # noqa: ARG002
            first.append(epoch * 10 + step)

    train_in(config, tmp_path / "run", Seen(), anew=False)
    assert first[:2] == [1, 11]


def test_sigterm_between_steps_saves_and_the_run_ends_as_if_nothing_happened(rings: Any, tmp_path: Path) -> None:
    class Terminate(Watcher):
        def step(self, epoch: int, step: int, steps: int) -> None:  # noqa: ARG002
            if (epoch, step) == (1, 1):
                os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(StoppedError, match="saved after 1 epochs and 2 steps: continue with gmn-train resume"):
        train_in(rings, tmp_path / "run", Terminate())
    assert signal.getsignal(signal.SIGTERM) == before
    train_in(rings, tmp_path / "run", anew=False)
    train_in(rings, tmp_path / "whole")
    one, other = (last_weights(rings, tmp_path / name) for name in ("run", "whole"))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_what_a_model_does_not_read_is_named(tmp_path: Path) -> None:
    graph = many_graphs()
    graph = graph.replace(edge_attr=np.ones((graph.num_slots, 1), np.float32))
    store = write_store(tmp_path / "s.zarr", graph, TokenSettings(2, 2, 1))
    manifest = read_manifest(store.path)
    assert unread_parts(manifest, ModelConfig.of("mlp"))[:2] == ["edge features", "tokens"]
    assert "edge features" not in unread_parts(manifest, ModelConfig.of("gmn", mpnn="gine"))
    assert "walks" in unread_parts(manifest, ModelConfig.of("gmn"))
    assert unread_parts(manifest, ModelConfig.of("gmn", encoder="rwf")) == ["ordering degree"] * bool(
        manifest.orderings and not ModelConfig.of("gmn").node_scan
    )


def test_compilation_is_told_once_and_only_where_it_takes_long() -> None:
    from numba import njit

    said: list[str] = []
    with tell_compilation(said.append):
        njit(lambda a: a + 1)(1)
    assert said == []
    with tell_compilation(said.append, patience=0.0):
        njit(lambda a: a + 2)(1)
        njit(lambda a: a + 3)(1)
    assert said == [NOTICE]
