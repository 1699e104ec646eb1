"""Odd names for a run's folder: one line where it cannot be one, and `.` where it is one."""

from pathlib import Path
from typing import Any

import pytest

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.cli import run_app
from gmn_train.cli import app
from tests.stores import ring_graph, write_store
from tests.train.small_runs import settings_for, train_in


def call(*arguments: str) -> object:
    with pytest.raises(SystemExit) as end:
        run_app(app, [*arguments])
    return end.value.code


@pytest.mark.parametrize("place", ["", ".", "..", "/"])
def test_what_is_no_name_is_refused(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    write_store(tmp_path / "a.zarr", ring_graph(), TokenSettings(1, 1, 1))
    monkeypatch.chdir(tmp_path)
    assert call("run", "--store", "a.zarr", "--epochs", "1", "--run-dir", place) == 2
    said = capsys.readouterr().err
    assert "is not a name for a run; give one such as" in said
    assert said.count("error:") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


def test_a_run_is_resumed_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    store = write_store(tmp_path / "a.zarr", ring_graph(), TokenSettings(1, 1, 1))
    train_in(settings_for(store, epochs=1, mode="full"), tmp_path / "r")
    (tmp_path / "r" / "summary.json").unlink()
    monkeypatch.chdir(tmp_path / "r")
    assert call("resume", ".") == 0, capsys.readouterr().err
    assert (tmp_path / "r" / "summary.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "r"]
