"""`gmn-prep tokenize --memory`: the bytes of the plain command, from a table sorted on disk and a mapped graph."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from gmn_pipeline.console.config import Layer, load_config
from gmn_pipeline.disk import resident_pages
from gmn_pipeline.disk.resident_pages import bounded_pages
from gmn_pipeline.errors import ConfigError, DatasetError, StoreError
from gmn_pipeline.store.files import group_writer
from gmn_prep import large
from gmn_prep.phases import Phases
from gmn_prep.tokenize import TokenizeOutcome, tokenize
from gmn_prep.tokenize_settings import TokenizeConfig
from gmn_prep.tokens.sweep import SweepTokenizer
from tests.end_to_end.commands import run, tree

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "edges.parquet"
    edges = np.random.default_rng(0).zipf(1.6, (6000, 2)) % 1500
    parquet.write_table(pa.table({"src": edges[:, 0], "dst": edges[:, 1]}), path)
    return path


def make(table: Path, out: Path, *, dry_run: bool = False, **settings: Any) -> TokenizeOutcome:
    sizes = {"m": 4, "M": 2, "s": 1, "block_size": 128, "ordering": ("degree", "random")}
    config = load_config(TokenizeConfig, Layer("test", {"dataset": str(table), "out": out, **sizes, **settings}))
    return tokenize(config, Phases(), dry_run=dry_run)


@pytest.mark.parametrize("in_order", [False, True])
def test_the_bytes_of_the_plain_command(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_order: bool
) -> None:
    """Mapped, and read in order as where mapped pages would be too many; arrays written piece by piece."""
    make(table, tmp_path / "plain.zarr")
    monkeypatch.setattr(group_writer, "AT_ONCE", 1000)
    if in_order:
        monkeypatch.setattr(large.MemoryBudget, "pages", 1 << 10)
        monkeypatch.setattr(large.MemoryBudget, "span", 1 << 19)
    swept = []
    monkeypatch.setattr(
        SweepTokenizer, "_take_span", lambda *a, take=SweepTokenizer._take_span: swept.append(a) or take(*a)
    )
    make(table, tmp_path / "large.zarr", memory=1.0)
    assert (len(swept) > 1) == in_order
    assert tree(tmp_path / "large.zarr") == tree(tmp_path / "plain.zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.zarr", "plain.zarr"]


def test_a_plan_for_parts(table: Path, tmp_path: Path) -> None:
    """`plan --memory`, then parts that map graph and pairs."""
    make(table, tmp_path / "plain.zarr")
    sizes = ("--m", 4, "--M", 2, "--s", 1, "--block-size", 128, "--ordering", "degree,random")
    planned = run("gmn-prep", "plan", "--dataset", table, *sizes, "--memory", 1, "--out", "s.zarr", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert run("gmn-prep", "part", "s.zarr", 0, "--of", 1, cwd=tmp_path).returncode == 0
    assert run("gmn-prep", "finish", "s.zarr", cwd=tmp_path).returncode == 0
    assert tree(tmp_path / "s.zarr") == tree(tmp_path / "plain.zarr")


def test_a_dry_run_says_what_is_needed(table: Path, tmp_path: Path) -> None:
    told = make(table, tmp_path / "s.zarr", memory=1.0, dry_run=True)
    assert list(tmp_path.iterdir()) == []
    made = make(table, tmp_path / "s.zarr", memory=1.0)
    assert told.estimate is not None
    assert told.manifest.graph.nodes == made.manifest.graph.nodes
    blocks = sum(f.stat().st_size for f in (tmp_path / "s.zarr").rglob("c/**/*") if f.is_file())
    assert 0.8 * blocks < told.estimate.disk_bytes < 2 * blocks
    assert told.estimate.beside_bytes > 16 * made.manifest.graph.slots


def test_a_dry_run_refuses_what_the_run_refuses(table: Path, tmp_path: Path) -> None:
    sparse = tmp_path / "sparse.parquet"
    ids = np.arange(400) * 1_000
    parquet.write_table(pa.table({"src": ids[:-1], "dst": ids[1:]}), sparse)
    for dataset, settings, message in (
        (sparse, {}, "most of those numbers are missing"),
        (table, {"directed": True}, "--directed and --memory do not go together"),
    ):
        for dry_run in (True, False):
            with pytest.raises((DatasetError, ConfigError), match=message):
                make(dataset, tmp_path / "s.zarr", memory=1.0, dry_run=dry_run, **settings)
    words = ("tokenize", "--dataset", table, "--m", 1, "--M", 1, "--s", 1, "--memory", 1, "--dry-run")
    assert "on top" not in run("gmn-prep", *words, cwd=tmp_path).stdout  # there are no encodings


def test_what_memory_cannot_bound_is_told(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for settings, error, message in (
        ({"rwse": 4}, ConfigError, "--memory cannot bound random_walk"),
        ({"ordering": ("pagerank",)}, ConfigError, "--memory cannot bound pagerank"),
        ({"codec": "zstd"}, ConfigError, "--memory writes arrays piece by piece"),
        ({"memory": 0.1}, ConfigError, "memory is 0.1 GB; it must lie in 0.75"),
        ({"dataset": "minesweeper-grid"}, DatasetError, "--memory goes with a table of edges"),
    ):
        with pytest.raises(error, match=message):
            make(table, tmp_path / "s.zarr", **{"memory": 1.0, **settings})
    monkeypatch.setattr(large, "BYTES_PER_NODE", 1 << 30)
    with pytest.raises(ConfigError, match="is too little for 1,485 nodes; give at least"):
        make(table, tmp_path / "s.zarr", memory=1.0)
    monkeypatch.undo()
    monkeypatch.setattr(large, "SPILL_BYTES", 1 << 50)
    with pytest.raises(StoreError, match="but its disk has"):
        make(table, tmp_path / "s.zarr", memory=1.0)


def test_a_missing_extra_is_one_line(table: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules['duckdb'] = None; from gmn_prep.cli import main; main()"
    arguments = ["tokenize", "--dataset", str(table), "--memory", "1", "--out", "s.zarr", "--quiet"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert 'pip install "gmn-pipeline[large]"' in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="pages are given back on Linux")
def test_pages_are_given_back_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    numbers = np.arange(1 << 22)
    numbers.tofile(file)
    mapped = np.memmap(file, np.int64, "r")
    before = resident_pages._resident_file_bytes()
    with bounded_pages(tmp_path, 1 << 22):
        deadline = time.monotonic() + 120  # a machine may be busy
        while True:
            assert np.array_equal(mapped, numbers)
            time.sleep(0.02)
            if resident_pages._resident_file_bytes() < before + (1 << 23):
                break
            assert time.monotonic() < deadline
