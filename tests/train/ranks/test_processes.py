"""Real processes that talk through gloo: their number changes no bit, and one that is killed ends the run."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
import torch

from gmn_train.runs.folder import RunFolder
from gmn_train.runs.start import resume_run, start_runs
from gmn_train.runs.watching.display import Watcher
from tests.end_to_end.commands import run, start
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


def test_a_dry_run_says_what_its_estimate_is_of(folder: Path) -> None:
    done = run("gmn-train", "run", "--store", folder / "one.zarr", *SHORT[2:4], "--procs", 2, "--dry-run", cwd=folder)
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "one process in one piece, as without --procs; this run has 2 processes and 8 grains" in told


def torchrun(
    folder: Path,
    words: Sequence[object],
    *,
    processes: int = 1,
    restarts: int = 0,
    node: tuple[int, int, int] | None = None,
) -> "subprocess.Popen[str]":
    """`gmn-train run` by torchrun; node: (rank, nodes, port) of one launcher of several on a rendezvous."""
    line = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    line += ["--max-restarts", str(restarts)]
    if node is None:
        line.append("--standalone")
    else:
        rank, nodes, port = node
        line += ["--nnodes", str(nodes), "--node-rank", str(rank), "--rdzv-backend", "c10d", "--rdzv-id", "test"]
        line += ["--rdzv-endpoint", f"127.0.0.1:{port}", "--local-addr", "127.0.0.1"]
    line += ["-m", "gmn_train", *map(str, words)]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(line, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)


SHORT = ["--epochs", 2, "--mode", "full", "--threads", 1, "--quiet", "--recipe", "none"]
SHORT += [word for key in ("width=8", "states=4", "node_layers=1") for word in ("--set", f"model.{key}")]


def test_torchrun_with_one_process_gives_the_weights_of_two(folder: Path) -> None:
    call = ["run", "--store", folder / "one.zarr", *SHORT, "--run-dir"]
    for processes in (1, 2):
        with torchrun(folder, [*call, folder / f"torchrun-{processes}"], processes=processes) as launcher:
            _, said = launcher.communicate()
        assert launcher.returncode == 0, said
    with start("gmn-train", *call, folder / "procs-1", "--procs", 1, cwd=folder) as one:
        pass
    assert one.returncode == 0
    config = RunFolder(folder / "torchrun-1").config()
    expected = last_weights(config, folder / "torchrun-1")
    for other in ("torchrun-2", "procs-1"):
        assert RunFolder(folder / other).config().grains == config.grains == 8
        found = last_weights(config, folder / other)
        assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize(("killed", "restarts"), [(0, 0), (1, 1)])
def test_a_process_killed_under_torchrun_is_told_in_one_line(folder: Path, killed: int, restarts: int) -> None:
    """Besides torchrun's own report. Where torchrun may start them again, the run goes on by itself."""
    path, whole = folder / f"restarts-{restarts}", folder / "never-killed"
    call = ["run", "--store", folder / "one.zarr", *SHORT, "--epochs", 25, "--checkpoint-seconds", 0, "--run-dir"]
    with torchrun(folder, [*call, path], processes=3, restarts=restarts) as launcher:
        while not RunFolder(path).last.exists():
            assert launcher.poll() is None, launcher.communicate()
            time.sleep(0.01)
        ranks = {child.environ()["RANK"]: child for child in psutil.Process(launcher.pid).children()}
        ranks[str(killed)].send_signal(signal.SIGKILL)
        _, said = launcher.communicate()
    told = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(told) == 1, said
    assert told[0].startswith("error: another process of this run has ended; the last checkpoint is kept")
    assert launcher.returncode == 1 - restarts, said
    if restarts:
        with start("gmn-train", *call, whole, "--procs", 1, cwd=folder) as unbroken:
            pass
        assert unbroken.returncode == 0
        config = RunFolder(whole).config()
        found, expected = last_weights(config, path), last_weights(config, whole)
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_a_mistake_of_all_processes_is_told_once(folder: Path) -> None:
    with torchrun(folder, ["run", "--store", "nope.zarr"], processes=3) as launcher:
        _, said = launcher.communicate()
    assert launcher.returncode == 1
    assert [line[:38] for line in said.splitlines() if line.startswith("error")] == [
        "error: there is no store at nope.zarr;"
    ], said


@pytest.mark.parametrize("differs", ["seed", "progress"])
def test_launchers_that_start_different_runs_end_with_one_line(folder: Path, differs: str) -> None:
    """Two launchers on one rendezvous: with other seeds, or with run folders of which one has a checkpoint."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    paths = [folder / f"mixed-{differs}-{rank}" for rank in range(2)]
    calls = [["run", "--store", folder / "one.zarr", *SHORT, "--run-dir", path] for path in paths]
    if differs == "seed":
        calls = [[*call, "--seed", rank] for rank, call in enumerate(calls)]
        message = "error: the processes of this run differ: seed is "
    else:
        with start("gmn-train", *calls[0], "--procs", 1, cwd=folder) as before:
            pass
        assert before.returncode == 0
        message = "error: the processes of this run differ: the progress in the run's folder is "
    first = torchrun(folder, calls[0], node=(0, 2, port))
    with first, torchrun(folder, calls[1], node=(1, 2, port)) as second:
        for launcher in (first, second):
            _, said = launcher.communicate()
            assert launcher.returncode != 0
            assert [line[: len(message)] for line in said.splitlines() if line.startswith("error")] == [message], said
            assert "exitcode  : 2 " in said
    assert not RunFolder(paths[1]).exists
