"""`gmn-prep tokenize --force`: killed at any moment the old store or the new one is there, whole."""

import random
import signal
import time
from pathlib import Path

from gmn_pipeline import TokenStore
from tests.end_to_end.commands import run, start, tree

GRID = ("tokenize", "--dataset", "minesweeper-grid", "--nodes", 2500, "--m", 3, "--M", 2, "--s", 1, "--block-size", 100)


def test_killed_while_it_replaces_a_store(tmp_path: Path) -> None:
    """Four kills, from the first file of the new store on; readers never see anything but one whole store."""
    out, chance = tmp_path / "s.zarr", random.Random(3)
    wanted = []
    for seed in (0, 1):
        assert run("gmn-prep", *GRID, "--seed", seed, "--out", f"{seed}.zarr", cwd=tmp_path).returncode == 0
        wanted.append(tree(tmp_path / f"{seed}.zarr"))
    (tmp_path / "0.zarr").rename(out)
    arguments = (*GRID, "--seed", 1, "--force", "--quiet", "--out", out)
    for _ in range(4):
        with start("gmn-prep", *arguments, cwd=tmp_path) as process:
            while process.poll() is None and not (tmp_path / "s.zarr.next").exists():
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.25))
            process.send_signal(signal.SIGKILL)
        assert tree(out) in wanted
        TokenStore.open(out).verify()
    assert run("gmn-prep", *arguments, cwd=tmp_path).returncode == 0
    assert tree(out) == wanted[1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1.zarr", "s.zarr"]
