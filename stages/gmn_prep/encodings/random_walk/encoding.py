"""Random-walk structural encodings: the probabilities that a walk is back where it began after 1 .. k steps."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gmn_pipeline.errors import ConfigError, nearest
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import FloatArray
from gmn_prep.encodings import ComputedEncoding, OnProgress, join_rows
from gmn_prep.encodings.random_walk.return_rows import expansion_work
from gmn_prep.encodings.random_walk.row_chunks import encoding_chunks, workers
from gmn_prep.encodings.random_walk.rows import TARGET_STDERR, fill_random_walk, share_random_walk

Mode = Literal["auto", "exact", "estimate"]
MODES = ("auto", "exact", "estimate")

EXACT_SLOTS = 4_000_000_000
"""`auto` computes exactly if that reads at most this many slots (a grid's 54M took 0.1 s on 2 cores)."""
PROBED_ROWS = 256
"""Rows whose work is counted to estimate that of all."""


@dataclass(frozen=True)
class RandomWalkEncoding:
    """The result of `random_walk_encoding`."""

    values: FloatArray
    """(n, k) float32: column j is the probability to be back after j+1 steps. Estimates are not clipped to 0..1."""
    stderr: FloatArray | None
    """(n, k) float32 standard errors, 0 where an entry is exact; None if all are."""


def random_walk_encoding(
    graph: Graph,
    k: int,
    *,
    mode: Mode = "auto",
    seed: int = 0,
    threads: int = 1,
    target_stderr: float = TARGET_STDERR,
    on_progress: OnProgress | None = None,
) -> RandomWalkEncoding:
    """Return probabilities diag(P^1) .. diag(P^k) of the uniform random walk P = D^-1 A.

    A walk that has nowhere to go stays: an isolated node, or a directed graph's node without out-edges, returns with
    probability 1. `exact` computes every row; `estimate` samples (see `return_walks`) until every entry's standard
    error is at most `target_stderr`; `auto` is exact where that is affordable. The bytes do not depend on `threads`.
    `on_progress` counts nodes. Raises ConfigError for k, mode or target out of range.
    """
    _check(k, mode, target_stderr)
    if mode == "auto":
        mode = choose_random_walk_mode(graph, k)
    settings = {"k": k, "mode": mode, "seed": seed, "target_stderr": target_stderr}
    names = ("values", "stderr") if mode == "estimate" else ("values",)
    out = {name: np.empty((graph.num_nodes, k), dtype=np.float32) for name in names}
    with workers(threads) as team:
        shared = share_random_walk(graph, settings, team)

        def fill(lo: int, hi: int) -> None:
            fill_random_walk(graph, shared, settings, lo, hi, {name: rows[lo:hi] for name, rows in out.items()})

        team.run_reporting(fill, encoding_chunks(graph, shared), on_progress, graph.num_nodes)
    made = join_rows(shared, out)
    return RandomWalkEncoding(made["values"], made.get("stderr"))


def compute_random_walk(
    graph: Graph, settings: dict[str, Any], *, threads: int, on_progress: OnProgress | None
) -> ComputedEncoding:
    """The entry of the table: `random_walk_encoding` with what the manifest keeps."""
    k, mode, seed = settings["k"], settings["mode"], settings.get("seed", 0)
    made = random_walk_encoding(graph, k, mode=mode, seed=seed, threads=threads, on_progress=on_progress)
    errors = {} if made.stderr is None else {"stderr": made.stderr}
    return ComputedEncoding({"values": made.values, **errors})


def settle_random_walk(graph: Graph, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Decide what `auto` comes to on this graph."""
    if settings["mode"] != "auto":
        return settings
    mode = choose_random_walk_mode(graph, settings["k"])
    return {**settings, "mode": mode, **({"seed": seed} if mode == "estimate" else {})}


def choose_random_walk_mode(graph: Graph, k: int) -> Literal["exact", "estimate"]:
    """What `auto` comes to: exact if that reads at most EXACT_SLOTS slots, judged by evenly spaced rows."""
    n, levels = graph.num_nodes, k if graph.directed else (k + 1) // 2
    if n * levels * graph.num_slots <= EXACT_SLOTS:
        return "exact"
    rows = np.unique(np.linspace(0, n - 1, PROBED_ROWS).astype(np.int64))
    most = EXACT_SLOTS * rows.size // n
    work = expansion_work(graph.indptr, graph.indices, rows, levels, most)
    return "exact" if work <= most else "estimate"


def _check(k: int, mode: str, target_stderr: float) -> None:
    if k < 1:
        raise ConfigError(f"k is {k}; the number of return probabilities must be at least 1")
    if mode not in MODES:
        raise ConfigError(f"mode '{mode}' is unknown; it is one of {', '.join(MODES)}{nearest(mode, MODES)}")
    if not target_stderr > 0:
        raise ConfigError(f"target_stderr is {target_stderr}; it must be above 0, such as 0.005")
