"""Estimates the cost of tokenizing, from a sample of the tokens themselves."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gmn_pipeline.console.output import size_text
from gmn_pipeline.errors import StoreError
from gmn_pipeline.graph import Graph
from gmn_pipeline.store.files.group_writer import ZSTD_LEVEL
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.store.format.schema import fixed_groups
from gmn_pipeline.store.writing.verbs import BlockArrays
from gmn_prep.tokens.tokenizer import Tokenizer

SAMPLE_RANGES, RANGE_NODES = 16, 64
PROCESS_BYTES = 250 << 20
"""Interpreter, Numba and compiled kernels."""
DISK_BYTES_PER_SECOND = 300e6
"""A plain disk; only used for the estimate of time."""


@dataclass(frozen=True)
class StoreCost:
    """Cost of a run, before it."""

    disk_bytes: int
    """With zstd a bound: token arrays compressed as the sample was, all others counted uncompressed."""
    memory_bytes: int
    seconds: float
    """Walks, tokens and writing; encodings come on top."""
    beside_bytes: int = 0
    """Disk that is needed besides the store while it is made."""


def estimate_cost(tokenizer: Tokenizer, manifest: Manifest, threads: int) -> StoreCost:
    """Tokenize a thousand nodes spread over the graph and scale up. The kernel is compiled before the clock runs."""
    graph = tokenizer.graph
    n = graph.num_nodes
    fixed = sum(
        int(np.prod(spec.shape)) * spec.dtype.itemsize
        for specs in fixed_groups(manifest).values()
        for spec in specs.values()
    )
    per_node = stored_per_node = seconds = 0.0
    if n:
        starts = np.unique(np.linspace(0, max(0, n - RANGE_NODES), SAMPLE_RANGES).astype(int))
        with ThreadPoolExecutor(1) as pool:
            tokenizer.block(0, 1, pool)
            begun = time.perf_counter()
            blocks = [tokenizer.block(int(a), min(int(a) + RANGE_NODES, n), pool) for a in starts]
            seconds = time.perf_counter() - begun
        sampled = sum(len(block.walks) for block in blocks)
        per_node = sum(array.nbytes for block in blocks for array in block.arrays().values()) / sampled
        stored_per_node = _compressed_bytes(blocks) / sampled if manifest.codec == "zstd" else per_node
        seconds *= n / sampled / threads
    tokens = int(stored_per_node * n)
    block = int(per_node * min(n, manifest.block_size))
    return StoreCost(
        disk_bytes=fixed + tokens,
        memory_bytes=PROCESS_BYTES + graph_bytes(graph) + 3 * block,
        seconds=max(seconds, (fixed + tokens) / DISK_BYTES_PER_SECOND),
    )


def _compressed_bytes(blocks: list[BlockArrays]) -> int:
    """Bytes of the blocks joined into one, each array compressed. A real block is larger and compresses no worse."""
    from numcodecs import zstd

    columns = [np.concatenate([block.arrays()[name] for block in blocks]) for name in blocks[0].arrays()]
    return sum(len(zstd.compress(np.ascontiguousarray(column), level=ZSTD_LEVEL)) for column in columns if column.size)


def graph_bytes(graph: Graph) -> int:
    """The graph's arrays and the linked pairs beside them."""
    pairs = graph.num_slots // 2 * graph.indices.dtype.itemsize + graph.indptr.nbytes
    return pairs + sum(array.nbytes for array in graph.arrays().values())


def check_room(out: Path, needed: int, written: int = 0, *, codec: str = "raw") -> None:
    """StoreError if the disk has less room than a store of `needed` bytes, of which `written` are there, will take."""
    folder = next(p for p in (out, *out.parents) if p.exists())
    disk = shutil.disk_usage(folder)
    if disk.total == 0:  # /proc and its like
        raise StoreError(f"{out} cannot be written: {folder} is not a folder that can hold files; choose another --out")
    if needed - written > disk.free:
        how, remedy = ("about", " or --codec zstd") if codec == "raw" else ("at most about (zstd, by a sample)", "")
        raise StoreError(
            f"{out} needs {how} {size_text(needed - written)} but its disk has {size_text(disk.free)} left; make "
            f"room, choose another --out, or use smaller m, M, s{remedy}"
        )
