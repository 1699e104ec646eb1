"""`gmn-prep tokenize` from outside: the same bytes whatever happens, sharing, reports, mistakes."""

import json
import os
import random
import resource
import select
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gmn_pipeline import TokenStore
from gmn_pipeline.disk.lock import release_lock, take_lock
from tests.end_to_end.commands import command, run, start, tree

GRID = ("tokenize", "--dataset", "minesweeper-grid", "--nodes", 900, "--m", 4, "--M", 3, "--s", 2)
FULL = (*GRID, "--nodes", 400, "--lap-pe", 4, "--rwse", 8, "--ordering", "degree,pagerank", "--block-size", 10)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes of an undisturbed run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    done = run("gmn-prep", *FULL, "--threads", 1, "--quiet", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return tree(folder / "data" / "minesweeper-grid.zarr")


def test_threads_and_company_change_no_byte(tmp_path: Path, wanted: dict[str, bytes]) -> None:
    with start("gmn-prep", *GRID, "--seed", 9, "--quiet", cwd=tmp_path) as other:
        done = run("gmn-prep", *FULL, "--threads", 3, "--out", "three.zarr", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert other.wait() == 0
    assert tree(tmp_path / "three.zarr") == wanted


def test_another_block_size_holds_the_same_tokens(tmp_path: Path, wanted: dict[str, bytes]) -> None:
    assert wanted
    for name, size in (("a.zarr", 64), ("b.zarr", 1000)):
        assert run("gmn-prep", *GRID, "--block-size", size, "--out", name, cwd=tmp_path).returncode == 0
    a, b = (TokenStore.open(tmp_path / name) for name in ("a.zarr", "b.zarr"))
    assert a.fingerprint == b.fingerprint
    ids = np.random.default_rng(0).permutation(a.num_nodes)
    one, other = a.view().gather(ids), b.view().gather(ids)
    for name in ("nodes", "node_ptr", "edges", "edge_ptr", "walks"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def count_files(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def test_killed_five_times_it_ends_with_the_same_bytes(tmp_path: Path, wanted: dict[str, bytes]) -> None:
    """SIGKILL at random moments of the part that writes; each run goes on where the last one died."""
    out, chance, kills = tmp_path / "k.zarr", random.Random(1), 0
    for _ in range(80):
        before = count_files(out)
        with start("gmn-prep", *FULL, "--quiet", "--out", out, cwd=tmp_path) as process:
            deadline = time.monotonic() + 60
            grown = 0
            while process.poll() is None and grown <= 0 and time.monotonic() < deadline:
                time.sleep(0.005)  # until this run has written something of its own
                grown = count_files(out) - before
            time.sleep(chance.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
            process.wait()
        if process.returncode == 0:
            break
        kills += 1
        if kills >= 5:
            assert run("gmn-prep", *FULL, "--quiet", "--out", out, cwd=tmp_path).returncode == 0
            break
    assert kills >= 5
    assert tree(out) == wanted
    assert sorted(p.name for p in tmp_path.iterdir()) == ["k.zarr"]


def test_ctrl_c_ends_with_130_and_resumes(tmp_path: Path, wanted: dict[str, bytes]) -> None:
    out = tmp_path / "c.zarr"
    with start("gmn-prep", *FULL, "--out", out, cwd=tmp_path, stderr=subprocess.PIPE) as p:
        while not (out / "tokens" / "b00001").exists():
            time.sleep(0.002)
            assert p.poll() is None
        p.send_signal(signal.SIGINT)
        _, stderr = p.communicate()
    assert p.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    unfinished = run("gmn-prep", "inspect", out, cwd=tmp_path)
    assert unfinished.returncode == 2
    assert "unfinished" in unfinished.stderr
    assert run("gmn-prep", *FULL, "--quiet", "--out", out, cwd=tmp_path).returncode == 0
    assert tree(out) == wanted


def test_waiting_for_another_process_is_told_even_with_quiet(tmp_path: Path) -> None:
    store = tmp_path / "s.zarr"
    lock = take_lock(store)
    with start("gmn-prep", *GRID, "--out", store, "--quiet", cwd=tmp_path, stderr=subprocess.PIPE) as job:
        assert job.stderr is not None
        try:
            ready, _, _ = select.select([job.stderr], [], [], 60)  # a busy machine
            assert ready, "it waits in silence"
            assert job.stderr.readline() == f"another process is writing {store}; waiting for it\n"
        finally:
            release_lock(lock)
        assert job.stderr.read() == ""
    assert job.returncode == 0


def test_asking_again_is_answered_from_the_store(tmp_path: Path) -> None:
    first = json.loads(run("gmn-prep", *GRID, "--json", cwd=tmp_path).stdout)
    assert first["made"]
    store = tmp_path / first["store"]
    before = tree(store)
    lock = store.with_name(store.name + ".lock")
    lock.touch()  # as a command leaves them that was ended after its last file
    (store / ".wip").mkdir()
    again = json.loads(run("gmn-prep", *GRID, "--json", cwd=tmp_path).stdout)
    assert not lock.exists()
    assert tree(store) == before
    assert not (store / ".wip").exists()
    assert (again["made"], again["exact"], again["fingerprint"]) == (False, True, first["fingerprint"])
    smaller = run("gmn-prep", *GRID[:5], "--m", 2, "--M", 3, "--s", 1, cwd=tmp_path)
    assert "already exists; it holds more than was asked" in " ".join(smaller.stdout.split())
    beside = run("gmn-prep", *GRID, "--m", 5, "--out", "data/larger.zarr", "--quiet", cwd=tmp_path)
    assert beside.returncode == 0
    found = json.loads(run("gmn-prep", *GRID, "--m", 5, "--json", cwd=tmp_path).stdout)
    assert (found["made"], found["store"]) == (False, "data/larger.zarr")
    other = run("gmn-prep", *GRID, "--seed", 3, cwd=tmp_path)
    assert other.returncode == 2
    assert "holds other content" in other.stderr
    assert "--force" in other.stderr
    assert tree(store) == before
    forced = json.loads(run("gmn-prep", *GRID, "--seed", 3, "--force", "--json", cwd=tmp_path).stdout)
    assert forced["made"]
    assert TokenStore.open(store).settings.seed == 3


def test_two_commands_at_once_share_one_store(tmp_path: Path) -> None:
    with (
        start("gmn-prep", *FULL, "--quiet", cwd=tmp_path) as one,
        start("gmn-prep", *FULL, "--quiet", cwd=tmp_path) as other,
    ):
        assert [one.wait(), other.wait()] == [0, 0]
    assert run("gmn-prep", "verify", "data/minesweeper-grid.zarr", cwd=tmp_path).returncode == 0


def test_config_file_and_flags(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        'dataset = "minesweeper-grid"\nnodes = 400\nm = 2\nordering = ["k-core", "random"]\n'
    )
    report = json.loads(run("gmn-prep", "tokenize", "--config", "c.toml", "--m", 1, "--json", cwd=tmp_path).stdout)
    assert report["settings"]["m"] == 1
    assert sorted(report["orderings"]) == ["k-core", "random"]
    (tmp_path / "c.toml").write_text("nods = 400\n")
    wrong = run("gmn-prep", "tokenize", "--config", "c.toml", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "unknown key 'nods' in c.toml; did you mean 'nodes'?" in wrong.stderr


def test_dry_run_estimates_and_writes_nothing(tmp_path: Path) -> None:
    report = json.loads(run("gmn-prep", *GRID, "--dry-run", "--json", cwd=tmp_path).stdout)
    assert list(tmp_path.iterdir()) == []
    made = json.loads(run("gmn-prep", *GRID, "--json", cwd=tmp_path).stdout)
    assert 0.8 < report["estimate"]["disk_bytes"] / made["bytes"] < 1.2
    shown = run("gmn-prep", *GRID, "--seed", 5, "--dry-run", "--out", "x.zarr", cwd=tmp_path).stdout
    assert all(word in shown for word in ("disk", "memory", "less than a minute"))


def test_node_tokens(tmp_path: Path) -> None:
    for arguments in (("--m", 0), ("--s", 0)):
        name = f"{arguments[0][2:]}.zarr"
        words = ("tokenize", "--dataset", "minesweeper-grid", "--nodes", 100, *arguments, "--out", name)
        assert run("gmn-prep", *words, cwd=tmp_path).returncode == 0
        batch = TokenStore.open(tmp_path / name).view().gather(np.arange(100))
        assert batch.nodes.tolist() == list(range(100))
    assert tree(tmp_path / "m.zarr") == tree(tmp_path / "s.zarr")


def test_inspect_and_verify(tmp_path: Path) -> None:
    run("gmn-prep", *FULL, "--block-size", 100, "--quiet", "--out", "s.zarr", cwd=tmp_path)
    shown = run("gmn-prep", "inspect", "s.zarr", cwd=tmp_path).stdout
    assert all(word in shown for word in ("m=4 M=3 s=2", "laplacian k=4", "degree, pagerank", "mean nodes"))
    assert max(map(len, shown.splitlines())) <= 80
    levels = json.loads(run("gmn-prep", "inspect", "s.zarr", "--json", cwd=tmp_path).stdout)["levels"]
    assert [row["level"] for row in levels] == [4, 3, 2, 1, 0]
    assert levels[-1] | {"level": 0, "mean_nodes": 1.0, "max_nodes": 1, "mean_edges": 0.0, "max_edges": 0} == levels[-1]
    node = run("gmn-prep", "inspect", "s.zarr", "--node", 77, "--png", "t.png", cwd=tmp_path)
    assert "tokens of node 77" in node.stdout
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    tokens = json.loads(run("gmn-prep", "inspect", "s.zarr", "--node", 77, "--json", cwd=tmp_path).stdout)["tokens"]
    assert tokens[-1] == {"level": 0, "repeat": 0, "nodes": [77], "edges": []}
    assert json.loads(run("gmn-prep", "verify", "s.zarr", "--json", cwd=tmp_path).stdout)["ok"]
    chunk = tmp_path / "s.zarr" / "tokens" / "b00000" / "walks" / "c" / "0" / "0"
    changed = bytearray(chunk.read_bytes())
    changed[5] ^= 1
    chunk.write_bytes(changed)
    broken = run("gmn-prep", "verify", "s.zarr", cwd=tmp_path)
    assert broken.returncode == 2
    assert "tokens/b00000/walks was changed" in broken.stderr


def save_graphs_of_2_6_and_3_nodes(path: Path) -> None:
    edges = np.array([[0, 1], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [8, 9], [9, 10]])
    np.savez(path, edge_index=edges.T, graph_ptr=[0, 2, 8, 11], x=np.ones((11, 1)), y=np.array([0, 1, 0]))


def test_graphs_too_small_for_lap_pe_are_padded_and_told(tmp_path: Path) -> None:
    save_graphs_of_2_6_and_3_nodes(tmp_path / "sizes.npz")
    flags = ("--dataset", "sizes.npz", "--m", 1, "--M", 1, "--s", 1, "--lap-pe", 4, "--out", "x.zarr")
    done = run("gmn-prep", "tokenize", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("note:") and "eigenvalues NaN" in line]
    assert len(notes) == 1
    assert "2 graphs have fewer than 5 nodes" in notes[0]
    store = TokenStore.open(tmp_path / "x.zarr")
    found = store.encoding("laplacian")
    vectors, values = np.asarray(found["vectors"]), np.asarray(found["values"])
    assert np.isnan(values).tolist() == [[False] + [True] * 3, [False] * 4, [False] * 2 + [True] * 2]
    assert not vectors[:2, 1:].any()
    assert not vectors[8:, 2:].any()
    assert vectors[2:8].any(axis=0).all()


MISTAKES = [
    (("--dataset", "minesweper-grid"), "did you mean 'minesweeper-grid'"),
    (("--dataset", "minesweeper-grid", "--m", -1), "m is -1"),
    (("--dataset", "minesweeper-grid", "--m", 2, "--M", 0), "M is 0 with m = 2"),
    (("--dataset", "minesweeper-grid", "--nodes", 9, "--lap-pe", 20), "largest possible k is 8"),
    (("--dataset", "sizes.npz", "--lap-pe", 20), "largest possible k is 5"),
    (("--dataset", "minesweeper-grid", "--ordering", "pagerang"), "did you mean 'pagerank'"),
    (("--dataset", "minesweeper-grid", "--walk", "straight"), "straight"),
    (("--dataset", "nowhere/data.npz"), "nowhere/data.npz"),
    (("--dataset", "minesweeper-grid", "--out", "/proc/x.zarr"), "/proc"),
    (("--dataset", "ogbn-arxiv", "--data-root", "empty"), "raw/edge.csv.gz"),
    (("--dataset", "nan.npz"), "NaN"),
    (("--dataset", "labels.npz", "--task", "node-multiclass", "--classes", 2), "0..1"),
    (("--nodes", 100), "--dataset is missing"),
    (("--dataset", "minesweeper-grid", "--nodes", 100, "--threads", 0), "threads is 0"),
    (("--dataset", "minesweeper-grid", "--nodes", 100, "--threads", 100_000), "threads is 100,000; at most 1,024"),
    (("--dataset", "minesweeper-grid", "--nodes", 9, "--out", ""), "--out is not a name for a store"),
    (("--dataset", "minesweeper-grid", "--nodes", 9, "--out", "x" * 300), "File name too long"),
    (("--dataset", "minesweeper-grid", "--encoding", "laplacan=3"), "did you mean 'laplacian'"),
    (("--dataset", "minesweeper-grid", "--m", "four"), "valid integer"),
    (("--datset", "minesweeper-grid"), "--datset"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_a_mistake_gets_one_clear_line_and_leaves_nothing(tmp_path: Path, arguments: tuple, message: str) -> None:
    edges = np.array([[0, 1], [1, 2]])
    np.savez(tmp_path / "nan.npz", edge_index=edges.T, x=np.array([[1.0], [np.nan], [0.0]]), y=np.array([0, 1, 0]))
    np.savez(tmp_path / "labels.npz", edge_index=edges.T, x=np.zeros((3, 1)), y=np.array([0, 1, 5]))
    save_graphs_of_2_6_and_3_nodes(tmp_path / "sizes.npz")
    before = tree(tmp_path)
    done = run("gmn-prep", "tokenize", *arguments, cwd=tmp_path, GMN_DATA_ROOT="")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1 or "Usage:" in done.stderr
    assert tree(tmp_path) == before
    assert not list(tmp_path.glob("**/*.lock"))


@pytest.mark.parametrize(
    ("codec", "message"),
    [("raw", "needs about .* has 100.00 kB left"), ("zstd", "needs at most about")],
)
def test_not_enough_disk_is_told_before_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, message: str
) -> None:
    """A disk of 100 kB left is the one thing made up: the estimate alone must refuse a store of 300 kB."""
    from gmn_pipeline.errors import StoreError
    from gmn_prep import estimate
    from gmn_prep.phases import Phases
    from gmn_prep.tokenize import tokenize
    from gmn_prep.tokenize_settings import TokenizeConfig

    monkeypatch.setattr(estimate.shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000, total=10**12))
    config = TokenizeConfig(dataset="minesweeper-grid", nodes=2500, codec=codec, out=tmp_path / "x.zarr")
    with pytest.raises(StoreError, match=message):
        tokenize(config, Phases())
    assert list(tmp_path.iterdir()) == []


def test_zstd_is_estimated_compressed(tmp_path: Path) -> None:
    flags = (*GRID, "--codec", "zstd", "--json", "--out", "x.zarr")
    estimate = json.loads(run("gmn-prep", *flags, "--dry-run", cwd=tmp_path).stdout)["estimate"]["disk_bytes"]
    made = json.loads(run("gmn-prep", *flags, cwd=tmp_path).stdout)["bytes"]
    assert 0.9 < estimate / made < 2.5


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = run("gmn-prep", "tokenize", "--dataset", "nope", "--debug", cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_help_answers_at_once(tmp_path: Path) -> None:
    for name in ("gmn-prep", "gmn-train"):
        taken = []
        for _ in range(4):
            begun = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command(name, "--help"), cwd=tmp_path, stdout=subprocess.DEVNULL, check=True)
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime)
        assert min(taken) < 0.5  # of a core: what else the machine does is not in it
