"""The whole command `gmn-prep tokenize`: time on ogbn-arxiv, and time and memory as the graph grows."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.timing import Row, data_root

COMMAND = Path(sys.executable).with_name("gmn-prep")


def run(out: Path, *arguments: str) -> tuple[float, float, dict]:
    """(seconds, peak resident bytes, the command's own report)."""
    shutil.rmtree(out, ignore_errors=True)
    command = [str(COMMAND), "tokenize", *arguments, "--out", str(out), "--json"]
    begun = time.perf_counter()
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, report = time.perf_counter() - begun, json.loads(text)
    return seconds, report["peak_memory_bytes"], report


def arxiv_line(folder: Path) -> str:
    root = data_root()
    if root is None:
        return "gmn-prep tokenize --dataset ogbn-arxiv: not run, GMN_DATA_ROOT names no folder"
    arguments = ("--dataset", "ogbn-arxiv", "--m", "8", "--M", "4", "--s", "2", "--data-root", str(root))
    runs = [run(folder / "a.zarr", *arguments) for _ in range(4)][1:]  # the first compiles and fills the cache
    seconds, peak, report = min(runs, key=lambda r: r[0])
    return (
        f"gmn-prep tokenize --dataset ogbn-arxiv --m 8 --M 4 --s 2: {seconds:.1f} s in all, peak {peak / 1e6:.0f} MB, "
        f"store {report['bytes'] / 1e6:.0f} MB, phases {report['seconds']}"
    )


def growth_lines(folder: Path) -> list[str]:
    lines = []
    for nodes in (1_000_000, 5_000_000):
        arguments = ("--dataset", "minesweeper-grid", "--nodes", str(nodes), "--m", "4", "--M", "2", "--s", "1")
        seconds, peak, report = run(folder / "g.zarr", *arguments)
        lines.append(
            f"minesweeper-grid of {report['nodes']:,} nodes at 4/2/1: {seconds:.1f} s, peak {peak / 1e6:.0f} MB, "
            f"store {report['bytes'] / 1e6:.0f} MB, phases {report['seconds']}"
        )
    return lines


def rows() -> list[Row]:
    return []


def lines() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        return [arxiv_line(Path(folder)), *growth_lines(Path(folder))]


if __name__ == "__main__":
    print(*lines(), sep="\n")
