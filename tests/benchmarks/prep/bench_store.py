"""Reading a store: gather against plain zarr slicing, and how much memory random reading keeps."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import zarr

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.store.format.blocks import default_block_size
from gmn_prep.datasets import DatasetOptions, load_dataset
from tests.benchmarks.timing import Row, side_by_side
from tests.stores import write_store

SETTINGS = TokenSettings(8, 4, 2)
BATCH, SHUFFLED = 1024, 128

RANDOM_READER = """
import sys, time
import numpy as np
from gmn_pipeline import TokenStore
from gmn_pipeline.console.machine import peak_memory
TokenStore.open(sys.argv[1])  # imports
begun = time.perf_counter()
store = TokenStore.open(sys.argv[1], resident_limit=256 << 20)
opened = time.perf_counter() - begun
view, rng = store.view(), np.random.default_rng(0)
view.gather(rng.integers(0, store.num_nodes, 64))
begun = time.perf_counter()
for _ in range(200):
    view.gather(rng.integers(0, store.num_nodes, 1024))
print(opened, time.perf_counter() - begun, peak_memory())
"""


def write_grid_store(path: Path, nodes: int) -> TokenStore:
    graph = load_dataset("minesweeper-grid", DatasetOptions(nodes=nodes)).graph
    return write_store(path, graph, SETTINGS, block_size=default_block_size(SETTINGS), threads=2)


def gather_rows(folder: Path) -> list[Row]:
    """Batches as a trainer reads them, shuffled, and consecutive nodes, which is kindest to zarr."""
    store = write_grid_store(folder / "small.zarr", 40_000)
    view, length = store.view(), SETTINGS.sequence_length
    group = zarr.open_group(str(store.path), mode="r")["tokens/b00000"]
    arrays = {name: group[name] for name in ("nodes", "node_ptr", "edges", "edge_ptr", "walks")}
    rng = np.random.default_rng(0)

    def read_slices(first: int, count: int) -> None:
        tokens = slice(first * length, (first + count) * length + 1)
        node_ptr, edge_ptr = arrays["node_ptr"][tokens], arrays["edge_ptr"][tokens]
        arrays["nodes"][node_ptr[0] : node_ptr[-1]]
        arrays["edges"][edge_ptr[0] : edge_ptr[-1]]
        arrays["walks"][first : first + count]

    shuffled = rng.integers(0, 8000, SHUFFLED)
    apart = side_by_side(lambda: view.gather(shuffled), lambda: [read_slices(int(v), 1) for v in shuffled])
    together = side_by_side(lambda: view.gather(np.arange(99, 99 + BATCH)), lambda: read_slices(99, BATCH), 5)
    return [
        Row(f"tokens of {SHUFFLED} shuffled nodes from a mapped store", "view.gather", "zarr slices", *apart),
        Row(f"tokens of {BATCH:,} consecutive nodes", "view.gather", "zarr slices", *together),
    ]


def memory_line(folder: Path) -> str:
    store = write_grid_store(folder / "large.zarr", 1_000_000)
    size = sum(f.stat().st_size for f in store.path.rglob("*") if f.is_file())
    command = [sys.executable, "-c", RANDOM_READER, str(store.path)]
    opened, seconds, peak = map(float, subprocess.run(command, capture_output=True, check=True).stdout.split())
    return (
        f"random reading of a {size / 1e9:.2f} GB raw store: opened in {opened * 1e3:.0f} ms, "
        f"{200 * 1024 / seconds:,.0f} nodes/s, peak resident memory {peak / 1e6:.0f} MB in all"
    )


def check_line(folder: Path) -> str:
    """What comparing checksums costs a reader of the whole store; the store is the one of `memory_line`."""
    seconds = {}
    for check in ("none", "sampled", "none", "sampled"):
        begun = time.process_time()
        store = TokenStore.open(folder / "large.zarr", check=check)
        for _ in store.view().blocks():
            pass
        store.finish_check()
        seconds[check] = time.process_time() - begun
    return f"reading all of it: {seconds['none']:.2f} s of CPU, with check=sampled {seconds['sampled']:.2f} s"


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return gather_rows(Path(folder))


def lines() -> list[str]:
    """Figures that stand alone."""
    with tempfile.TemporaryDirectory() as folder:
        return [memory_line(Path(folder)), check_line(Path(folder))]


if __name__ == "__main__":
    print(*rows(), *lines(), sep="\n")
