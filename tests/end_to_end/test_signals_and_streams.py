"""Real processes that are told to end, and streams that close: one line at most, and the right exit code."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.end_to_end.commands import command, run, start

SMALL = ("--set", "model.width=16", "--set", "model.node_layers=2", "--set", "model.states=4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("signals")
    small = ("--nodes", 400, "--m", 1, "--M", 2, "--s", 1, "--out", "grid.zarr", "--quiet")
    assert run("gmn-prep", "tokenize", "--dataset", "minesweeper-grid", *small, cwd=path).returncode == 0
    return path


def test_sigterm_saves_a_checkpoint_and_exits_143(folder: Path) -> None:
    arguments = ("run", "--store", "grid.zarr", "--epochs", 100000, *SMALL, "--run-dir", "t")
    with start("gmn-train", *arguments, cwd=folder, stderr=subprocess.PIPE) as process:
        while not (folder / "t" / "metrics.jsonl").exists() or not (folder / "t" / "metrics.jsonl").stat().st_size:
            assert process.poll() is None
            time.sleep(0.05)
        assert not (folder / "t" / "checkpoints" / "last.pt").exists()  # it is saved each 30 s
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate()
    assert process.returncode == 143
    assert stderr.splitlines()[-1].startswith("stopped by SIGTERM; saved after")
    assert (folder / "t" / "checkpoints" / "last.pt").exists()


def test_a_run_speaks_before_torch_is_imported_and_leaves_out_what_it_does_not_need(folder: Path) -> None:
    words = command("gmn-train", "run", "--store", "grid.zarr", "--epochs", 1, *SMALL)
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}  # a line for every module, when it is imported
    with subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        imported = []
        while not (line := process.stderr.readline()).startswith("loading grid.zarr"):
            assert line, "the run ended without a word"
            imported.append(line.split("|")[-1].strip())
        later = [line.split("|")[-1].strip() for line in process.stderr]
    assert "gmn_train.cli" in imported
    assert not {"torch", "sklearn", "numba"} & {name.partition(".")[0] for name in imported}
    assert process.returncode == 0
    assert "torch" in later
    assert not {"sklearn", "pandas", "torch._dynamo"} & set(later)  # each would take a second


def test_ctrl_c_during_a_first_compilation_ends_with_130(folder: Path, tmp_path: Path) -> None:
    arguments = ("run", "--store", "grid.zarr", "--epochs", 5, *SMALL, "--run-dir", "interrupted")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        command("gmn-train", *arguments), cwd=folder, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        while "compiling kernels" not in (line := process.stderr.readline()):
            assert line, "the run ended before it compiled anything"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "error: interrupted" in stderr


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)


PREP, TRAIN = command("gmn-prep")[0], command("gmn-train")[0]


@pytest.mark.parametrize(
    "line",
    [
        f"{PREP} inspect grid.zarr --json | head -1",
        f"{PREP} datasets | head -1",
        f"{TRAIN} settings | head -1",
        f"{TRAIN} settings --json | true",
    ],
)
def test_a_reader_that_goes_away_is_no_error(folder: Path, line: str) -> None:
    done = shell(line + "; exit ${PIPESTATUS[0]}", folder)
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("redirect", "codes"), [(">&-", (0,)), ("2>&-", (0,)), (">/dev/full", (2,)), ("2>/dev/full", (0,))]
)
def test_closed_and_full_streams(folder: Path, redirect: str, codes: tuple[int, ...]) -> None:
    done = shell(f"{PREP} datasets {redirect}", folder)
    assert done.returncode in codes, done.stderr
    assert len(done.stderr.splitlines()) <= 1
    assert "Traceback" not in done.stderr
    mistake = shell(f"{PREP} inspect nowhere.zarr {redirect}", folder)
    assert mistake.returncode == 2
    assert len(mistake.stderr.splitlines()) <= 1


def test_square_brackets_in_a_path(folder: Path) -> None:
    name = "a[/x][bold]"
    small = ("--epochs", 1, *SMALL, "--run-dir", name)
    done = run("gmn-train", "run", "--store", "grid.zarr", *small, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert name in done.stdout
    assert run("gmn-train", "evaluate", name, cwd=folder).returncode == 0
