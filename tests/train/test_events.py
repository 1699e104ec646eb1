"""TensorBoard's own reader finds one scalar per metric and epoch, after kills and resumes too."""

import builtins
from pathlib import Path

import pytest

from gmn_pipeline import TokenSettings
from gmn_train import train as training
from gmn_train.runs import folder as run_folder
from gmn_train.runs.display import Display
from gmn_train.runs.events import FILE
from gmn_train.runs.folder import RunFolder
from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.train_config import TrainConfig
from tests.stores import ring_graph, write_store


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    store = write_store(tmp_path / "ring.zarr", ring_graph(30, 30), TokenSettings(1, 2, 1))
    model = ModelConfig.preset("default", width=16, node_layers=1, token_blocks="input", states=4)
    return TrainConfig(store=store.path, epochs=6, model=model, checkpoint_seconds=1e9)


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
    folder = RunFolder(tmp_path / "run")
    folder.create(config)
    training.train(config, folder, Display("nothing"))
    found = read_scalars(folder.path / FILE)
    assert set(found) == {"loss", "lr", "val", "test", "eval_seconds", "seconds"}
    for name, series in found.items():
        rows = folder.metrics()
        assert [step for step, _ in series] == [row["epoch"] for row in rows] == list(range(6))
        assert [value for _, value in series] == pytest.approx([row[name] for row in rows])


@pytest.mark.parametrize("saved", [True, False])
def test_resumed_there_is_no_step_twice(saved: bool, config: TrainConfig, tmp_path: Path, monkeypatch) -> None:
    """Killed in epoch 4, the last checkpoint of epoch 2 or none at all, and the last record cut off."""
    folder = RunFolder(tmp_path / "run")
    folder.create(config)
    real, steps = training._train_step, iter(range(4))

    def step_or_die(*arguments):
        if next(steps, None) is None:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(training, "_train_step", step_or_die)
    end_epoch = training._end_epoch

    def save_before_epoch_2_is_done(folder, session, model, progress, epoch, *rest):
        if saved and epoch == 2:
            progress.epoch, progress.step = 2, 0
            optimizer = training.make_optimizer(model, config)
            training._save(folder, session, model, optimizer, progress)
        return end_epoch(folder, session, model, progress, epoch, *rest)

    monkeypatch.setattr(training, "_end_epoch", save_before_epoch_2_is_done)
    with pytest.raises(KeyboardInterrupt):
        training.train(config, folder, Display("nothing"))
    assert len(folder.metrics()) == 4
    if (folder.path / FILE).exists():
        (folder.path / FILE).write_bytes((folder.path / FILE).read_bytes()[:-5])
    monkeypatch.setattr(training, "_train_step", real)
    monkeypatch.setattr(training, "_end_epoch", end_epoch)
    training.train(config, folder, Display("nothing"))
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
    folder = RunFolder(tmp_path / "run")
    folder.create(config)
    training.train(config, folder, Display("nothing"))
    assert len(folder.metrics()) == 6
    assert not (folder.path / FILE).exists()
