"""Runs never answer for one another, are never lost, and a damaged folder is told in one line."""

import json
import resource
from pathlib import Path

import pytest
import torch

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.cli import run_app
from gmn_train.cli import app
from gmn_train.runs.folder import SUMMARY, RunFolder
from tests.stores import ring_graph, write_store
from tests.train.small_runs import DieAt, train_in

SMALL = ["--set", "model.width=8", "--set", "model.states=2", "--set", "model.node_layers=1", "--epochs", "2"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with two stores of the same shape; run folders are relative, as by default."""
    monkeypatch.chdir(tmp_path)
    graph = ring_graph(30, 30)
    write_store(tmp_path / "a.zarr", graph, TokenSettings(1, 2, 1))
    write_store(tmp_path / "b.zarr", graph.replace(y=(graph.y + 1) % 3), TokenSettings(1, 2, 1))
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command printed; it must end with `code`, and a failure with one line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        run_app(app, [*arguments])
    printed = capsys.readouterr()
    assert end.value.code == code, printed.err
    if code:
        assert sum(line.startswith("error:") for line in printed.err.splitlines()) == 1
        assert "Traceback" not in printed.err
    return printed.out + " ".join(printed.err.split())


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    return call(capsys, "run", *SMALL, *arguments, code=code)


def summary(name: str) -> dict:
    found = RunFolder(Path(name)).summary()
    assert found is not None
    return found


def test_force_trains_anew(capsys) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    first, weights = summary("r"), Path("r/checkpoints/last.pt").read_bytes()
    run(capsys, "--store", "a.zarr", "--run-dir", "r", "--seed", "1", "--force")
    assert summary("r")["seed"] == 1
    assert Path("r/checkpoints/last.pt").read_bytes() != weights
    run(capsys, "--store", "a.zarr", "--run-dir", "fresh", "--seed", "1")
    same = ("val", "test", "best_epoch", "parameters")
    assert [summary("r")[key] for key in same] == [summary("fresh")[key] for key in same]
    assert first["seed"] == 0


def test_a_run_made_with_force_is_resumed_not_wiped(capsys) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r", "--force", "--set", "checkpoint_seconds=0")
    assert "force" not in Path("r/config.toml").read_text()
    config = RunFolder(Path("r")).config()
    with pytest.raises(KeyboardInterrupt):
        train_in(config, Path("r"), DieAt(1))
    before = Path("r/metrics.jsonl").read_bytes()
    assert b'"epoch": 0' in before
    call(capsys, "resume", "r")
    assert Path("r/metrics.jsonl").read_bytes().startswith(before)
    assert "already finished" in call(capsys, "resume", "r")


def test_a_run_answers_for_its_own_store_only(capsys) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    assert "is a run with another store" in run(capsys, "--store", "b.zarr", "--run-dir", "r", code=2)
    Path("a.zarr").rename("moved.zarr")
    assert "already finished" in run(capsys, "--store", "moved.zarr", "--run-dir", "r")


def test_a_store_replaced_under_a_run_is_told(capsys) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    Path("a.zarr").rename("old.zarr")
    Path("b.zarr").rename("a.zarr")
    for command in (["resume", "r"], ["evaluate", "r"], ["predict", "r", "--out", "p.npz"]):
        assert "a.zarr is another store now" in call(capsys, *command, code=2)


def test_a_changed_byte_ends_the_run(capsys, here: Path) -> None:
    """Found beside training, before a summary is written; not looked for with --check none."""
    chunk = here / "a.zarr" / "tokens" / "b00000" / "walks" / "c" / "0" / "0"
    content = bytearray(chunk.read_bytes())
    content[0] ^= 1
    chunk.write_bytes(content)
    tokens = ("--store", "a.zarr", "--model", "gmn-input-tokens")  # blocks that are not read are not checked
    for check in ("sampled", "full"):
        assert "was changed" in run(capsys, *tokens, "--run-dir", check, "--check", check, code=2)
        assert not (here / check / "summary.json").exists()
    run(capsys, *tokens, "--run-dir", "none", "--check", "none")


def test_a_store_is_no_place_for_a_run(capsys) -> None:
    assert "is a token store" in run(capsys, "--store", "a.zarr", "--run-dir", "b.zarr", code=2)


@pytest.mark.parametrize("garbage", [b"", b"\0\1\2", b"[1, 2]", b'{"x": 1}', b'"text"', b"\xff\xfe"])
@pytest.mark.parametrize(
    "file", ["config.toml", "summary.json", "metrics.jsonl", "checkpoints/last.pt", "checkpoints/best.safetensors"]
)
def test_garbage_in_a_run_folder_is_told_in_one_line(capsys, here: Path, file: str, garbage: bytes) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    (here / "r" / file).write_bytes(garbage)
    if file in ("metrics.jsonl", "checkpoints/last.pt"):
        (here / "r" / "summary.json").unlink()
    for command in (["resume", "r"], ["evaluate", "r"], ["report", "r"]):
        with pytest.raises(SystemExit) as end:
            run_app(app, command)
        printed = capsys.readouterr()
        assert end.value.code in (0, 2), printed.err
        assert "Traceback" not in printed.err
        if end.value.code == 2:
            assert printed.err.count("error:") == 1
    if file == "checkpoints/best.safetensors":
        assert "cannot be read" in call(capsys, "evaluate", "r", code=2) or garbage == b""


def test_a_summary_that_lacks_something_is_told_in_one_line(capsys) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    whole = summary("r")
    for key in SUMMARY:
        for changed in ({k: v for k, v in whole.items() if k != key}, {**whole, key: [1]}):
            Path("r/summary.json").write_text(json.dumps(changed))
            assert "is not a run's summary" in call(capsys, "resume", "r", code=2), key
    Path("r/summary.json").write_text(json.dumps(whole))
    call(capsys, "resume", "r")


@pytest.mark.parametrize("size", [0, 100, 6000])
def test_a_disk_that_is_full_is_told_in_one_line(capsys, size: int) -> None:
    """A limit on the size of files stands for the full disk; torch fails in several ways on it."""
    run(capsys, "--store", "a.zarr", "--run-dir", "whole", "--set", "checkpoint_seconds=0")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        said = run(capsys, "--store", "a.zarr", "--run-dir", "r", "--set", "checkpoint_seconds=0", code=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot write to r" in said
    run(capsys, "--store", "a.zarr", "--run-dir", "r", "--set", "checkpoint_seconds=0")
    assert (
        Path("r/checkpoints/best.safetensors").read_bytes() == Path("whole/checkpoints/best.safetensors").read_bytes()
    )


@pytest.mark.parametrize("option", ["--threads", "--loader-threads"])
def test_too_many_threads_are_refused(capsys, option: str) -> None:
    """OpenMP would end the process with a segmentation fault."""
    said = run(capsys, "--store", "a.zarr", "--run-dir", "r", option, "100000", code=2)
    assert "threads is 100,000; at most 1,024 are allowed" in said


def test_a_killed_run_leaves_nothing_behind_once_resumed(capsys) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    Path("r/summary.json").unlink()
    for name in ("r/checkpoints/last.pt.50a8.part", "r/metrics.jsonl.ef91.part"):
        Path(name).write_bytes(b"half of it")
    call(capsys, "resume", "r")
    assert not list(Path("r").rglob("*.part"))


def test_a_run_killed_when_it_was_done_leaves_no_lock_once_it_is_reported(capsys) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    Path("r.lock").touch()  # the last thing that a run does is to remove it
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    assert not Path("r.lock").exists()
    Path("r.lock").touch()
    call(capsys, "resume", "r")
    assert not Path("r.lock").exists()


def test_a_measurement_that_is_no_number_is_told(capsys) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    file = Path("r/metrics.jsonl")
    file.write_text(file.read_text().replace('"loss": ', '"loss": {}, "lost": ', 1))
    assert "holds a line that is not an epoch" in call(capsys, "report", "r", code=2)


def test_metrics_survive_a_cut_line(capsys) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    rows = RunFolder(Path("r")).metrics()
    with Path("r/metrics.jsonl").open("a") as file:
        file.write(json.dumps(rows[-1])[:20])
    assert RunFolder(Path("r")).metrics() == rows


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epochs = 2\n", "", "lacks epochs; start the run again with gmn-train run --force"),
        ('mode = "full"\n', "", "lacks mode"),
        ("procs = 1\n", "procs = 255\n", "was started without grains"),
        ("procs = 1\n", "procs = 255\ngrains = 8\n", "r has 8 grains for 255 processes"),
        ("procs = 1\n", "procs = 5000\ngrains = 5000\n", "at most"),
    ],
)
def test_settings_of_a_run_that_were_changed(capsys, old: str, new: str, message: str) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    text = Path("r/config.toml").read_text()
    assert old in text
    Path("r/config.toml").write_text(text.replace(old, new))
    assert message in call(capsys, "resume", "r", code=2)


def _change(state: dict, how: str) -> None:
    moments = state["optimizer"]["state"]
    if how == "a name for a number":
        state["optimizer"]["state"] = {str(number): values for number, values in moments.items()}
    elif how == "another shape":
        moments[0]["exp_avg"] = moments[0]["exp_avg"][:1]
    elif how == "a number that is none":
        state["progress"]["epoch"] = "two"
    elif how == "no average":
        del state["average"]


@pytest.mark.parametrize("how", ["a name for a number", "another shape", "a number that is none", "no average"])
def test_a_checkpoint_that_holds_something_else_is_told(capsys, how: str) -> None:
    run(capsys, "--store", "a.zarr", "--run-dir", "r")
    state = torch.load("r/checkpoints/last.pt", weights_only=True)
    _change(state, how)
    torch.save(state, "r/checkpoints/last.pt")
    Path("r/summary.json").unlink()
    assert "is not a checkpoint of this model" in call(capsys, "resume", "r", code=2)
