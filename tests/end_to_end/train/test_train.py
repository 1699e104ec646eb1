"""`gmn-train` from outside: killed and resumed, its exports, and what it says of mistakes."""

import json
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from gmn_pipeline import Graph, StoreWriter, Task, TokenSettings
from gmn_pipeline.store.writing.writer import plan_manifest
from tests.end_to_end.commands import command, run, start
from tests.stores import write_store

SMALL = ("--set", "model.width=16", "--set", "model.node_layers=2", "--set", "model.states=4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a grid store, a many-graph store and one finished run."""
    path = tmp_path_factory.mktemp("train")
    for arguments in (
        ("--dataset", "minesweeper-grid", "--nodes", 900, "--m", 2, "--M", 4, "--s", 2, "--out", "grid.zarr"),
        ("--dataset", "skip-ring", "--graphs", 60, "--m", 2, "--M", 4, "--s", 2, "--out", "rings.zarr"),
    ):
        assert run("gmn-prep", "tokenize", *arguments, "--quiet", cwd=path).returncode == 0
    done = run(
        "gmn-train", "run", "--store", "grid.zarr", "--epochs", 40, *SMALL, "--run-dir", "run", "--json", cwd=path
    )
    assert done.returncode == 0, done.stderr
    return path


def test_it_learns_and_leaves_a_complete_folder(folder: Path) -> None:
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert summary["test"] > 0.7  # an MLP on raw features stays near 0.5: hidden cells all look alike
    assert {"config.toml", "metrics.jsonl", "summary.json", "checkpoints"} <= {
        p.name for p in (folder / "run").iterdir()
    }
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == list(range(40))
    assert max(row["val"] for row in rows) == summary["val"]
    assert rows[summary["best_epoch"]]["test"] == summary["test"]


def test_config_toml_repeats_the_run(folder: Path) -> None:
    again = run("gmn-train", "run", "--config", "run/config.toml", "--run-dir", "again", "--json", cwd=folder)
    assert again.returncode == 0, again.stderr
    one, other = (load_file(folder / name / "checkpoints" / "best.safetensors") for name in ("run", "again"))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[k], other[k]) for k in one)


def test_killed_five_times_in_the_middle_it_ends_with_the_same_weights(folder: Path) -> None:
    settings = ("--store", "rings.zarr", "--epochs", 12, *SMALL, "--set", "batch_size=4")
    whole = run("gmn-train", "run", *settings, "--run-dir", "whole", "--quiet", cwd=folder)
    assert whole.returncode == 0, whole.stderr
    chance, kills = random.Random(3), 0
    last = folder / "killed" / "checkpoints" / "last.pt"
    arguments = ("run", *settings, "--run-dir", "killed", "--quiet", "--checkpoint-seconds", 0)
    while kills < 5:
        before = last.stat().st_mtime_ns if last.exists() else 0
        with start("gmn-train", *arguments, cwd=folder) as process:
            deadline = time.monotonic() + 120
            while process.poll() is None and time.monotonic() < deadline:
                if last.exists() and last.stat().st_mtime_ns != before:  # this sitting has saved something
                    break
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.1))
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert process.returncode == -signal.SIGKILL, "the run ended before it could be killed five times"
        kills += 1
    resumed = run("gmn-train", "resume", "killed", "--json", cwd=folder)
    assert resumed.returncode == 0, resumed.stderr
    import torch

    states = [torch.load(folder / name / "checkpoints" / "last.pt", weights_only=True) for name in ("whole", "killed")]
    assert states[0]["progress"]["epoch"] == states[1]["progress"]["epoch"] == 12
    for key, tensor in states[0]["model"].items():
        assert torch.equal(tensor, states[1]["model"][key]), key


def test_evaluate_predict_and_report(folder: Path) -> None:
    found = json.loads(run("gmn-train", "evaluate", "run", "--json", cwd=folder).stdout)
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert found["test"] == pytest.approx(summary["test"], abs=1e-6)
    done = run("gmn-train", "predict", "run", "--out", "p.npz", "--embeddings", cwd=folder)
    assert "900 items" in done.stdout
    with np.load(folder / "p.npz") as predictions:
        assert predictions["embedding"].shape == (900, 16)
    page = run("gmn-train", "report", "run", "--out", "r.html", cwd=folder)
    assert page.returncode == 0, page.stderr
    text = (folder / "r.html").read_text()
    assert "<html" in text
    assert "http://" not in text.replace("http://www.w3.org", "")  # nothing is fetched


def test_several_seeds_and_splits(folder: Path) -> None:
    several = ("--seeds", "0,1", "--splits", "0-1", "--epochs", 2, *SMALL, "--run-dir", "many")
    done = run("gmn-train", "run", "--store", "grid.zarr", *several, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "over 4 runs" in done.stdout
    assert "over 2 seeds" in done.stdout
    assert "over 2 splits" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_one_process_at_a_time_and_ctrl_c_ends_it_with_130(folder: Path) -> None:
    arguments = (
        "run",
        "--store",
        "grid.zarr",
        "--epochs",
        5000,
        *SMALL,
        "--run-dir",
        "c",
        "--set",
        "checkpoint_seconds=0",
    )
    with start("gmn-train", *arguments, cwd=folder, stderr=subprocess.PIPE) as process:
        while not (folder / "c" / "checkpoints" / "last.pt").exists():
            assert process.poll() is None
            time.sleep(0.02)
        second = run("gmn-train", *arguments, cwd=folder)
        assert second.returncode == 2
        assert "another process is training c;" in second.stderr
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert not (folder / "c.lock").exists()


MISTAKES = [
    (("--store", "nowhere.zarr"), "there is no store"),
    (("--store", "grid.zarr", "--m", 7), "the store has m=2"),
    (("--store", "grid.zarr", "--split", 77), "split 77 does not exist"),
    (("--store", "grid.zarr", "--set", "model.wdth=3"), "did you mean 'width'"),
    (("--store", "grid.zarr", "--set", "lr=fast"), "lr = 'fast'"),
    (("--store", "grid.zarr", "--set", "lr"), "KEY=VALUE"),
    (("--store", "grid.zarr", "--model", "gmn-papr"), "did you mean 'gmn-paper'"),
    (("--store", "grid.zarr", "--device", "cuda"), "use --device cpu"),
    (("--store", "grid.zarr", "--model", "gmn-pagerank"), "has no ordering 'pagerank'"),
    (("--store", "."), "not a token store"),
    ((), "--store is missing"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_a_mistake_gets_one_clear_line(folder: Path, arguments: tuple, message: str) -> None:
    done = run("gmn-train", "run", *arguments, "--epochs", 1, "--run-dir", "mistake", cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("error:")]) == 1
    assert "Traceback" not in done.stderr
    assert not (folder / "mistake").exists()


@pytest.fixture(scope="module")
def bad_stores(folder: Path) -> Path:
    """Beside the good ones: a store that was killed, one of a later version, and ones that lack labels or splits."""
    ring = Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 0]], 4)
    task, tokens = Task.of("node", "binary", 2), TokenSettings(1, 1, 1)
    labelled = ring.replace(y=np.array([0, 1, 0, 1]), task=task)
    write_store(folder / "unlabelled.zarr", ring, tokens)
    write_store(folder / "unsplit.zarr", labelled, tokens)
    write_store(folder / "untrained.zarr", labelled.replace(splits=np.array([2, 2, 3, 3])), tokens)
    with StoreWriter.open(folder / "unfinished.zarr", plan_manifest(labelled, tokens, block_size=2), labelled):
        pass
    newer = write_store(folder / "newer.zarr", labelled, tokens).path / "zarr.json"
    newer.write_text(newer.read_text().replace('"format": 1', '"format": 2'))
    return folder


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("unfinished", "unfinished.zarr is unfinished"),
        ("newer", "has store format 2, this version reads format 1"),
        ("unlabelled", "unlabelled.zarr has no labels"),
        ("unsplit", "unsplit.zarr has no splits"),
        ("untrained", "has no training items"),
    ],
)
def test_a_store_that_cannot_be_trained_from(bad_stores: Path, store: str, message: str) -> None:
    done = run("gmn-train", "run", "--store", f"{store}.zarr", "--epochs", 1, "--run-dir", "mistake", cwd=bad_stores)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert next(line for line in done.stderr.splitlines() if not line.startswith("loading ")).startswith("error:")
    assert "Traceback" not in done.stderr
    assert not (bad_stores / "mistake").exists()


def test_a_checkpoint_of_another_store(folder: Path) -> None:
    for arguments in (
        ("evaluate", "run", "--store", "rings.zarr"),
        ("predict", "run", "--store", "rings.zarr", "--out", "o.npz"),
    ):
        done = run("gmn-train", *arguments, cwd=folder)
        assert done.returncode == 2
        assert "the model was trained" in " ".join(done.stderr.split())  # for another task, on other columns
    assert not (folder / "o.npz").exists()
    shutil.copytree(folder / "run", folder / "moved")
    (folder / "moved" / "summary.json").unlink()
    text = (folder / "moved" / "config.toml").read_text()
    (folder / "moved" / "config.toml").write_text(text.replace("grid.zarr", "rings.zarr"))
    kept = (folder / "moved" / "checkpoints" / "last.pt").read_bytes()
    done = run("gmn-train", "resume", "moved", "--quiet", cwd=folder)
    assert done.returncode == 2
    assert "is another store now" in " ".join(done.stderr.split())
    assert (folder / "moved" / "checkpoints" / "last.pt").read_bytes() == kept


def test_divergence_names_the_place_and_keeps_the_last_good_checkpoint(folder: Path) -> None:
    """A learning rate that rises until numbers overflow."""
    wild = ("--set", "lr=1e30", "--set", "warmup=30", "--set", "clip=0", "--set", "checkpoint_seconds=0")
    arguments = ("run", "--store", "rings.zarr", "--epochs", 40, *SMALL, *wild, "--run-dir", "wild")
    done = run("gmn-train", *arguments, "--quiet", cwd=folder)
    assert done.returncode == 2
    assert re.search(
        r"became .* in epoch \d+, step \d+; the last good checkpoint is kept", " ".join(done.stderr.split())
    )
    assert "Traceback" not in done.stderr
    import torch

    state = torch.load(folder / "wild" / "checkpoints" / "last.pt", weights_only=True)
    assert all(torch.isfinite(tensor).all() for tensor in state["model"].values())


def test_no_room_while_saving_keeps_the_last_good_checkpoint(folder: Path) -> None:
    settings = ("--store", "grid.zarr", *SMALL, "--set", "checkpoint_seconds=0", "--run-dir", "full", "--quiet")
    assert run("gmn-train", "run", *settings, "--epochs", 2, cwd=folder).returncode == 0
    kept = (folder / "full" / "checkpoints" / "last.pt").read_bytes()
    (folder / "full" / "summary.json").unlink()
    text = (folder / "full" / "config.toml").read_text()
    (folder / "full" / "config.toml").write_text(text.replace("epochs = 2", "epochs = 4"))

    def little_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

    failed = subprocess.run(
        command("gmn-train", "resume", "full"),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=little_room,
    )
    assert failed.returncode == 2
    assert "cannot write" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert (folder / "full" / "checkpoints" / "last.pt").read_bytes() == kept
    assert run("gmn-train", "resume", "full", "--quiet", cwd=folder).returncode == 0
