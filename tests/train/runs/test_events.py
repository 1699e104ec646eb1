"""TensorBoard's own reader finds one scalar per metric and epoch, after kills and resumes too."""

import builtins
from dataclasses import replace
from pathlib import Path

import pytest

from gmn_pipeline import TokenSettings
from gmn_train.runs import folder as run_folder
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.watching.events import FILE
from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.run_settings import TrainConfig
from tests.stores import ring_graph, write_store
from tests.train.small_runs import DieAt, settings_for, train_in


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    store = write_store(tmp_path / "ring.zarr", ring_graph(30, 30), TokenSettings(1, 2, 1))
    model = ModelConfig(width=16, node_layers=1, token_blocks="input", states=4)
    return settings_for(store, epochs=6, model=model, checkpoint_seconds=1e9)


def read_scalars(path: Path) -> dict[str, list[tuple[int, float]]]:
    """(step, value) by name, every record in the file."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    found: dict[str, list[tuple[int, float]]] = {}
    for raw in RawEventFileLoader(str(path)).Load():
        event = Event.FromString(raw)
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_every_metric_of_every_epoch(config: TrainConfig, tmp_path: Path) -> None:
    train_in(config, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    scalars = read_scalars(folder.path / FILE)
    assert set(scalars) == {"loss", "lr", "val", "test", "eval_seconds", "seconds"}
    for name, series in scalars.items():
        rows = folder.metrics()
        assert [step for step, _ in series] == [row["epoch"] for row in rows] == list(range(6))
        assert [value for _, value in series] == pytest.approx([row[name] for row in rows])


@pytest.mark.parametrize("saved", [True, False])
def test_resumed_there_is_no_step_twice(saved: bool, config: TrainConfig, tmp_path: Path) -> None:
    """Killed in epoch 5, the last checkpoint of epoch 2 or none at all, and the last record cut off."""
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        train_in(replace(config, checkpoint_seconds=0 if saved else 1e9), folder.path, DieAt(2))
    with pytest.raises(KeyboardInterrupt):
        train_in(config, folder.path, DieAt(2 if saved else 4), anew=False)
    assert len(folder.metrics()) == 4
    if (folder.path / FILE).exists():
        (folder.path / FILE).write_bytes((folder.path / FILE).read_bytes()[:-5])
    train_in(config, folder.path, anew=False)
    assert [row["epoch"] for row in folder.metrics()] == list(range(6))
    for series in read_scalars(folder.path / FILE).values():
        assert [step for step, _ in series] == list(range(6))


def test_without_tensorboard_nothing_is_missed(config: TrainConfig, tmp_path: Path, monkeypatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest):
        assert not name.startswith("tensorboard")
        return real(name, *rest)

    monkeypatch.setattr(run_folder, "has_tensorboard", lambda: False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    train_in(config, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert len(folder.metrics()) == 6
    assert not (folder.path / FILE).exists()
