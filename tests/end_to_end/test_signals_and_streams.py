"""Real processes that are told to end, and streams that close: one line at most, and the right exit code."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.end_to_end.commands import command, run

SMALL = ("--set", "model.width=16", "--set", "model.node_layers=2", "--set", "model.states=4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("signals")
    small = ("--nodes", 400, "--m", 1, "--M", 2, "--s", 1, "--out", "grid.zarr", "--quiet")
    assert run("gmn-prep", "tokenize", "--dataset", "minesweeper-grid", *small, cwd=path).returncode == 0
    return path


def test_sigterm_saves_a_checkpoint_and_exits_143(folder: Path) -> None:
    arguments = ("run", "--store", "grid.zarr", "--epochs", 100000, *SMALL, "--run-dir", "t")
    with subprocess.Popen(command("gmn-train", *arguments), cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        begun = time.monotonic()
        assert process.stderr is not None
        assert process.stderr.readline().startswith("loading grid.zarr")
        assert time.monotonic() - begun < 3 * (1 + os.getloadavg()[0])  # 3 s on an idle machine
        while not (folder / "t" / "metrics.jsonl").exists() or not (folder / "t" / "metrics.jsonl").stat().st_size:
            assert process.poll() is None
            time.sleep(0.05)
        assert not (folder / "t" / "checkpoints" / "last.pt").exists()  # it is saved each 30 s
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 143
    assert stderr.splitlines()[-1].startswith("stopped by SIGTERM; saved after")
    assert (folder / "t" / "checkpoints" / "last.pt").exists()
