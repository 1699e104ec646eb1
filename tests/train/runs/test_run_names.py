"""Runs by name, listed, trained longer, and found with their store after a move."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.cli import run_app
from gmn_pipeline.errors import ConfigError, TrainError
from gmn_train.cli import app
from gmn_train.runs.folder import RunFolder, default_run_dir
from gmn_train.runs.naming import find_run, folder_of_name, runs_in
from gmn_train.runs.start import resume_run, start_runs
from gmn_train.runs.watching.display import Watcher
from gmn_train.settings.run_settings import TrainConfig
from tests.stores import write_store
from tests.train.small_runs import DieAt, last_weights, many_graphs, settings_for, train_in


@pytest.fixture
def rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainConfig:
    """Settings of a run, with a relative store, in a folder of its own."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    write_store(Path("rings.zarr"), many_graphs(), TokenSettings(1, 2, 1))
    return settings_for(Path("rings.zarr"), epochs=2, batch_size=8)


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        run_app(app, list(words))
    return int(end.value.code or 0)


def test_a_name_is_a_folder_and_every_command_takes_it(rings: TrainConfig, capsys: pytest.CaptureFixture[str]) -> None:
    done = start_runs(rings, Watcher(), name="first")[0]
    assert done.path == Path("data/runs/first")
    assert call("evaluate", "first", "--json") == 0
    assert json.loads(capsys.readouterr().out)["test"] == done.summary["test"]
    assert call("predict", "first", "--out", "p.csv") == 0
    assert call("resume", "first", "--json") == 0
    assert call("report", "first", "--csv", "metrics.csv") == 0
    lines = Path("metrics.csv").read_text().splitlines()
    assert lines[0].startswith("run,epoch,loss,lr")
    assert len(lines) == 3
    capsys.readouterr()
    assert call("runs", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(line["name"], line["state"], line["epochs"]) for line in listed] == [("first", "finished", 2)]
    assert call("runs") == 0
    assert "rings.zarr" in capsys.readouterr().out
    assert call("evaluate", "frist") == 2
    assert "there is no run 'frist', neither as a folder nor in data/runs; did you mean 'first'?" in " ".join(
        capsys.readouterr().err.split()
    )


def test_interrupted_and_damaged_runs_are_listed(rings: TrainConfig, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        start_runs(rings, DieAt(3), name="stopped")
    Path("data/runs/broken").mkdir()
    Path("data/runs/broken/config.toml").write_text("x = [")
    assert call("runs", "--json") == 0
    states = {line["name"]: line["state"] for line in json.loads(capsys.readouterr().out)}
    assert states["stopped"] == "interrupted"
    assert states["broken"].startswith("damaged")
    assert call("runs") == 0
    assert call("runs", "nowhere") == 0
    assert "no runs in nowhere" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden", "x" * 101, "-x"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ConfigError, match="--name is"):
        folder_of_name(name)


def test_a_folder_of_several_runs_is_not_one(rings: TrainConfig) -> None:
    start_runs(replace(rings, epochs=1), Watcher(), seeds=[0, 1], name="both")
    assert len(runs_in(Path("data/runs"))) == 2
    with pytest.raises(TrainError, match="holds 2 runs; name one of them"):
        find_run("both")
    assert find_run("both/seed1-split0") == Path("data/runs/both/seed1-split0")
    with pytest.raises(ConfigError, match="both say where the run goes"):
        start_runs(rings, Watcher(), name="a", run_dir=Path("b"))


def test_default_folders_are_readable_and_older_ones_are_kept(rings: TrainConfig) -> None:
    path = default_run_dir(rings)
    assert path.parent.name.startswith("rings-gmn-")
    digest = path.parent.name.rpartition("-")[2]
    older = Path("data/runs") / f"rings-{digest}"
    older.mkdir(parents=True)
    assert default_run_dir(rings) == older / "seed0-split0"


def test_a_run_is_trained_longer(rings: TrainConfig, capsys: pytest.CaptureFixture[str]) -> None:
    start_runs(rings, Watcher(), name="long")
    path = Path("data/runs/long")
    before = RunFolder(path).metrics()
    seen: list[Any] = []

    class Seen(Watcher):
        def start(self, header: Any) -> None:
            seen.append(header.first_epoch)

    done = resume_run(path, Seen(), epochs=4)
    assert seen == [2]
    assert done.summary["epochs"] == 4
    assert [row["epoch"] for row in RunFolder(path).metrics()] == [0, 1, 2, 3]
    assert RunFolder(path).metrics()[:2] == before
    config = RunFolder(path).config()
    assert (config.epochs, config.extended_from) == (4, (2,))
    with pytest.raises(TrainError, match="is fewer; give more"):
        resume_run(path, Watcher(), epochs=3)
    assert resume_run(path, Watcher(), epochs=4).existed
    assert call("resume", "long", "--epochs", "5", "--json") == 0
    assert json.loads(capsys.readouterr().out)["epochs"] == 5
    assert RunFolder(path).config().extended_from == (2, 4)
    assert call("run", "--config", str(path / "config.toml"), "--name", "again") == 2
    assert "set epochs = 2, then gmn-train resume RUN --epochs 4, then 5" in capsys.readouterr().err
    start_runs(rings, Watcher(), name="other")
    with pytest.raises(TrainError, match="train it longer with gmn-train resume data/runs/other --epochs 9, choose"):
        start_runs(replace(rings, epochs=9), Watcher(), name="other")


def test_an_extended_run_that_is_killed_ends_with_the_same_weights(rings: TrainConfig) -> None:
    config = replace(rings, checkpoint_seconds=0)
    for name in ("whole", "killed"):
        train_in(config, Path(name))
    resume_run(Path("whole"), Watcher(), epochs=4)
    with pytest.raises(KeyboardInterrupt):
        resume_run(Path("killed"), DieAt(3), epochs=4)
    resume_run(Path("killed"), Watcher())
    one, other = (last_weights(config, Path(name)) for name in ("whole", "killed"))
    assert all((one[key] == other[key]).all() for key in one)


def test_a_moved_project_finds_its_store(rings: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_runs(rings, Watcher(), name="first")
    absolute = settings_for(Path("rings.zarr").absolute(), epochs=1)
    start_runs(absolute, Watcher(), name="absolute")
    (tmp_path / "project").rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    for name in ("first", "absolute"):
        config = RunFolder(tmp_path / "moved" / "data" / "runs" / name).config()
        assert config.store.resolve() == tmp_path / "moved" / "rings.zarr"
    shutil.move("moved/rings.zarr", "moved/data/renamed.zarr")
    config = RunFolder(tmp_path / "moved" / "data" / "runs" / "first").config()
    assert config.store.name == "renamed.zarr"
    assert call("evaluate", "moved/data/runs/first") == 0
    shutil.rmtree("moved/data/renamed.zarr")
    assert RunFolder(tmp_path / "moved" / "data" / "runs" / "first").config().store == Path("rings.zarr")
