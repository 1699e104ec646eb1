"""Random-walk structural encodings: the probabilities that a walk is back where it began after 1 .. k steps."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gmn_pipeline.counter_random import Purpose, root_key
from gmn_pipeline.errors import ConfigError, nearest
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import FloatArray, IntArray
from gmn_prep.encodings import ComputedEncoding, OnProgress
from gmn_prep.encodings.locality import bandwidth_order, renumbered
from gmn_prep.encodings.random_walk.directed_walks import count_returns
from gmn_prep.encodings.random_walk.return_rows import expansion_work, return_rows, return_rows_directed
from gmn_prep.encodings.random_walk.return_walks import return_estimates
from gmn_prep.encodings.random_walk.row_chunks import Workers, row_chunks, workers

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
    target_stderr: float = 0.005,
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
    values = np.empty((graph.num_nodes, k), dtype=np.float32)
    with workers(threads) as team:
        if mode == "exact":
            _fill_exact(graph, values, team, on_progress)
            return RandomWalkEncoding(values, None)
        stderr = np.empty_like(values)
        key = root_key(seed, Purpose.RETURN_WALK)
        _fill_estimates(graph, key, target_stderr, values, stderr, team, on_progress)
        return RandomWalkEncoding(values, stderr)


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


def _fill_exact(graph: Graph, values: FloatArray, team: Workers, on_progress: OnProgress | None) -> None:
    csr = (graph.indptr, graph.indices)
    chunks = row_chunks(graph.indptr, parts=128)
    if graph.directed:
        team.run_reporting(
            lambda lo, hi: return_rows_directed(*csr, values, lo, hi), chunks, on_progress, graph.num_nodes
        )
    else:
        weight = _inverse_roots(graph.indptr)
        team.run_reporting(
            lambda lo, hi: return_rows(*csr, weight, values, lo, hi), chunks, on_progress, graph.num_nodes
        )


def _fill_estimates(
    graph: Graph,
    key: np.uint64,
    target: float,
    values: FloatArray,
    stderr: FloatArray,
    team: Workers,
    on_progress: OnProgress | None,
) -> None:
    n = graph.num_nodes
    if graph.directed:
        csr, chunks = (graph.indptr, graph.indices), row_chunks(graph.indptr, parts=128)
        team.run_reporting(
            lambda lo, hi: count_returns(*csr, key, target, values, stderr, lo, hi), chunks, on_progress, n
        )
        return
    # With neighbours near each other in memory the whole takes two thirds of the time.
    order = bandwidth_order(graph.indptr, graph.indices)
    indptr, indices = renumbered(graph.indptr, graph.indices, order)
    weight = _inverse_roots(indptr)
    out, error = np.empty_like(values), np.empty_like(stderr)
    arguments = (indptr, indices, order, weight, _running_sums(indptr, indices, weight), key, target, out, error)
    chunks = row_chunks(indptr, parts=128)
    team.run_reporting(lambda lo, hi: return_estimates(*arguments, lo, hi), chunks, on_progress, n)
    values[order], stderr[order] = out, error


def choose_random_walk_mode(graph: Graph, k: int) -> Literal["exact", "estimate"]:
    """What `auto` comes to: exact if that reads at most EXACT_SLOTS slots, judged by evenly spaced rows."""
    n, levels = graph.num_nodes, k if graph.directed else (k + 1) // 2
    if n * levels * graph.num_slots <= EXACT_SLOTS:
        return "exact"
    rows = np.unique(np.linspace(0, n - 1, PROBED_ROWS).astype(np.int64))
    most = EXACT_SLOTS * rows.size // n
    work = expansion_work(graph.indptr, graph.indices, rows, levels, most)
    return "exact" if work <= most else "estimate"


def _inverse_roots(indptr: IntArray) -> FloatArray:
    """(n,) degree^-1/2, 1 for isolated nodes."""
    return 1 / np.sqrt(np.maximum(np.diff(indptr), 1))


def _running_sums(indptr: IntArray, indices: IntArray, weight: FloatArray) -> FloatArray:
    """(slots,) sums of the neighbours' weights within a row, up to and with each slot."""
    running = np.cumsum(weight[indices])
    before = np.concatenate([[0.0], running])[indptr[:-1]]
    running -= np.repeat(before, np.diff(indptr))
    return running


def _check(k: int, mode: str, target_stderr: float) -> None:
    if k < 1:
        raise ConfigError(f"k is {k}; the number of return probabilities must be at least 1")
    if mode not in MODES:
        raise ConfigError(f"mode '{mode}' is unknown; it is one of {', '.join(MODES)}{nearest(mode, MODES)}")
    if not target_stderr > 0:
        raise ConfigError(f"target_stderr is {target_stderr}; it must be above 0, such as 0.005")
