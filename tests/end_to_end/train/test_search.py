"""`gmn-train search` as two processes on one study; one is told to end, and the recipe is used."""

import signal
import subprocess
from pathlib import Path

from tests.end_to_end.commands import run, start

SEARCH = (
    *("search", "--store", "grid.zarr", "--recipe", "none", "--name", "s", "--budget", "20m", "--trials", 6),
    *("--over", "model.name,lr", "--epochs", 3, "--threads", 1),
    *("--set", "model.width=8", "--set", "model.node_layers=2", "--set", "model.states=2"),
)


def test_two_processes_share_a_study_and_one_is_told_to_end(tmp_path: Path) -> None:
    small = ("--nodes", 64, "--m", 1, "--M", 2, "--s", 1, "--out", "grid.zarr", "--quiet")
    assert run("gmn-prep", "tokenize", "--dataset", "minesweeper-grid", *small, cwd=tmp_path).returncode == 0
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path}
    with start("gmn-train", *SEARCH, **pipes) as one, start("gmn-train", *SEARCH, **pipes) as other:
        assert one.stderr is not None
        for line in one.stderr:
            if " left  " in line:  # its first trial is over
                break
        one.send_signal(signal.SIGTERM)
        rest = one.communicate()[1]
        out, told = other.communicate()
    assert one.returncode == 143, rest
    assert rest.splitlines()[-1].startswith("stopped by SIGTERM; data/searches/s holds what stands")
    assert other.returncode == 0, told
    assert "Traceback" not in rest + told
    numbers = [line.split()[1] for line in told.splitlines() if line.startswith("trial ") and "seed" not in line]
    assert len(set(numbers)) == len(numbers)
    assert "verdict" in out
    recipe = Path("data/searches/s/recipe.toml")
    assert "# Verdict: " in (tmp_path / recipe).read_text()
    assert (tmp_path / "data/searches/s/report.html").read_text().startswith("<!doctype html>")
    used = run("gmn-train", "run", "--store", "grid.zarr", "--recipe", recipe, "--run-dir", "r", cwd=tmp_path)
    assert used.returncode == 0
    assert f"recipe {recipe}: Measured: validation roc_auc " in used.stderr


def test_mistakes_of_a_search_are_one_line(tmp_path: Path) -> None:
    done = run("gmn-train", "search", "--store", "none.zarr", "--budget", "soon", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "error: --budget is 'soon'; write a time such as 30m, 2h or 1h30m\n")
