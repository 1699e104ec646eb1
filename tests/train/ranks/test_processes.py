"""Real processes that talk through gloo: their number changes no bit, and one that is killed ends the run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from gmn_train.runs.folder import RunFolder
from gmn_train.runs.start import resume_run, start_runs
from gmn_train.runs.watching.display import Watcher
from tests.end_to_end.commands import start
from tests.train.ranks import worker
from tests.train.ranks.runs import configs, write_stores
from tests.train.small_runs import last_weights

pytestmark = pytest.mark.usefixtures("one_thread")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every run, made by 1, 2 and 3 processes."""
    folder = tmp_path_factory.mktemp("ranks")
    write_stores(folder)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.train.ranks.worker", str(folder)], cwd=ROOT, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}, stdin=subprocess.PIPE,
    ) as several:  # fmt: skip
        worker.train_all(folder, 1)
        assert several.stderr is not None
        said = several.stderr.read()  # to the end, while its stdin is open: it would end with that
    assert several.returncode == 0, said
    return folder


def timeless_metrics(path: Path) -> list[dict[str, object]]:
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in RunFolder(path).metrics()]


@pytest.mark.parametrize("mode", ["full", "batch", "graphs"])
def test_the_number_of_processes_changes_no_bit(folder: Path, mode: str) -> None:
    config = configs(folder)[mode]
    expected = last_weights(config, folder / f"{mode}-1")
    metrics = [
        {k: v for k, v in row.items() if "seconds" not in k} for row in RunFolder(folder / f"{mode}-1").metrics()
    ]
    for size in worker.SIZES:
        path = folder / f"{mode}-{size}"
        found = last_weights(config, path)
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        assert timeless_metrics(path) == metrics
        summary = RunFolder(path).summary()
        assert summary is not None
        assert summary["processes"] == size
        assert summary["sent_bytes"] > 0


def test_a_killed_process_ends_the_run_with_one_line_and_another_number_resumes_it(folder: Path) -> None:
    words = ["--epochs", 25, "--mode", "full", "--grains", 3, "--checkpoint-seconds", 0, "--threads", 1, "--quiet"]
    words += [word for key in ("width=8", "states=4", "node_layers=1") for word in ("--set", f"model.{key}")]
    call = ["run", "--store", folder / "one.zarr", *words]
    killed = folder / "killed"
    call += ["--procs", 2, "--run-dir", killed]
    with start("gmn-train", *call, cwd=folder, stderr=subprocess.PIPE) as parent:
        while not RunFolder(killed).last.exists():
            assert parent.poll() is None, parent.communicate()
            time.sleep(0.01)
        ranks = {child.environ()["RANK"]: child for child in psutil.Process(parent.pid).children()}
        ranks["1"].send_signal(signal.SIGKILL)
        _, said = parent.communicate()
    assert parent.returncode == 2
    assert said.strip().startswith("error: process 1 of 2 was ended by SIGKILL; the last checkpoint is kept")
    assert len(said.strip().splitlines()) == 1
    assert not ranks["0"].is_running()
    assert RunFolder(killed).summary() is None

    resume_run(killed, Watcher(), procs=1)
    config = RunFolder(killed).config()
    start_runs(config, Watcher(), run_dir=folder / "unbroken")
    found, expected = last_weights(config, killed), last_weights(config, folder / "unbroken")
    assert all(torch.equal(found[name], expected[name]) for name in expected)
