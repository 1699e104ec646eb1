"""The tutorial's commands are run, in its order, and print what it shows; the Python of other pages is run, too."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gmn_pipeline import Task, TokenSettings
from gmn_pipeline.console.cli import run_app
from gmn_prep.cli import app as prep
from gmn_train.cli import app as train
from tests.stores import write_store
from tests.tutorial import PAGE, is_shown_whole, renew_output, shape, steps

PROGRAMS = {"gmn-prep": prep, "gmn-train": train}


def run(command: str) -> int:
    """The exit code, as in a terminal; fewer epochs. In this process: importing torch for each would take minutes."""
    program, *words = shlex.split(re.sub(r"--epochs \d+", "--epochs 3", command))
    if program not in PROGRAMS:
        return subprocess.call([sys.executable if program == "python" else program, *words])
    with pytest.raises(SystemExit) as end:
        run_app(PROGRAMS[program], words)
    return int(end.value.code or 0)


def test_the_tutorial_does_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for kind, name, lines in steps(PAGE.read_text(encoding="utf-8")):
        if kind == "file":
            (tmp_path / name).write_text("\n".join(lines) + "\n")
            continue
        code = run(name)
        printed = "".join(capfd.readouterr())
        assert code == (2 if lines and lines[0].startswith("error:") else 0), f"{name}\n{printed}"
        if is_shown_whole(name):
            assert len(printed.splitlines()) == len(lines)  # predictions after three epochs are others
            continue
        known = [shape(line) for line in printed.splitlines()]
        for line in lines:
            start = shape(line.partition("...")[0])
            assert any(line_printed.startswith(start) for line_printed in known), f"{name}: {line}\n{printed}"


def test_outputs_are_renewed_line_by_line() -> None:
    printed = ["epoch 1", "test    0.9 accuracy", "time    2.0 s", "next    this"]
    assert renew_output("gmn-train run", ["...", "test    0.71 accuracy", "next    this"], printed) == [
        "...", "test    0.9 accuracy", "next    this"
    ]  # fmt: skip
    assert renew_output("python show.py", ["old"], ["new", "lines"]) == ["new", "lines"]
    with pytest.raises(SystemExit, match="prints no line like: gone"):
        renew_output("gmn-train run", ["gone"], printed)


def python_of(page: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (PAGE.parent / page).read_text(), re.S))


def test_the_training_loop_of_the_model_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("gmn-prep tokenize --dataset minesweeper-grid --nodes 100 --m 2 --M 2 --s 1 --out data/grid.zarr") == 0
    names: dict[str, Any] = {}
    exec(python_of("model.md"), names)
    assert names["logits"].shape == (100, 1)


@pytest.mark.usefixtures("tables_as_before")
def test_the_parts_added_in_extending_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's own program, then a store with the added metric, and runs of the added model, encoder and branch."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "edges": np.stack([np.arange(40), (np.arange(40) + 1) % 40], 1),
        "features": np.random.default_rng(0).random((40, 3)).astype(np.float32),
        "labels": np.arange(40) % 7,
        "splits": np.arange(40) % 4,
    }
    exec(python_of("extending.md"), names)
    assert names["tokens"].node_ids.tolist() == [0, 5, 7]
    assert run("gmn-prep verify data/mine.zarr") == 0
    graph = names["graph"].replace(task=Task.of("node", "multiclass", 7, "error_rate"))
    write_store(Path("data/own.zarr"), graph, TokenSettings(2, 2, 1))
    small = "--epochs 2 --set model.width=8 --set model.states=2 --set model.node_layers=2 --json"
    for options in ("--model token-means", "--set model.encoder=largest --set model.mpnn=sum"):
        assert run(f"gmn-train run --store data/own.zarr {options} {small}") == 0
    summaries = [json.loads(file.read_text()) for file in Path("data/runs").rglob("summary.json")]
    assert {summary["model"] for summary in summaries} == {"token-means", "gmn"}
    assert {summary["metric"] for summary in summaries} == {"error_rate"}
