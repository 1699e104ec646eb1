"""Return probabilities cut into ranges of rows: what all of them read, and the rows of one range.

A row depends on the graph alone, so any process may compute any range. Threads and cluster workers run the same code.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gmn_pipeline.counter_random import Purpose, root_key
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, FloatArray, IntArray
from gmn_prep.encodings.locality import bandwidth_order, renumbered
from gmn_prep.encodings.random_walk.directed_walks import count_returns
from gmn_prep.encodings.random_walk.return_rows import return_rows, return_rows_directed
from gmn_prep.encodings.random_walk.return_sketch import return_sketch
from gmn_prep.encodings.random_walk.return_walks import return_estimates
from gmn_prep.encodings.random_walk.row_chunks import Workers

TARGET_STDERR = 0.005


def share_random_walk(graph: Graph, settings: Mapping[str, Any], team: Workers) -> dict[str, Array]:
    """Arrays that every range reads besides the graph, computed once. `order`: row i is that of node order[i]."""
    if graph.directed:
        return {}
    if settings["mode"] == "exact":
        return {"weight": _inverse_roots(graph.indptr)}
    # With neighbours near each other in memory the whole takes two thirds of the time.
    order = bandwidth_order(graph.indptr, graph.indices)
    indptr, indices = renumbered(graph.indptr, graph.indices, order)
    weight = _inverse_roots(indptr)
    running = _running_sums(indptr, indices, weight)
    target = settings.get("target_stderr", TARGET_STDERR)
    sketch, sketch_error = return_sketch(indptr, indices, order, settings["k"], settings["seed"], target, team)
    arrays = {"order": order, "indptr": indptr, "indices": indices, "weight": weight, "running": running}
    return arrays | {"sketch": sketch, "sketch_error": sketch_error}


def fill_random_walk(
    graph: Graph, shared: Mapping[str, Array], settings: Mapping[str, Any], lo: int, hi: int, out: Mapping[str, Array]
) -> None:
    """Rows lo .. hi into `out`: `values`, and `stderr` of estimates, each (hi - lo, k) float32."""
    csr = (graph.indptr, graph.indices)
    if settings["mode"] == "exact":
        if graph.directed:
            return_rows_directed(*csr, out["values"], lo, hi)
        else:
            return_rows(*csr, shared["weight"], out["values"], lo, hi)
        return
    key = root_key(settings["seed"], Purpose.RETURN_WALK)
    goal = (key, settings.get("target_stderr", TARGET_STDERR), out["values"], out["stderr"], lo, hi)
    if graph.directed:
        count_returns(*csr, *goal)
    else:
        names = ("indptr", "indices", "order", "weight", "running", "sketch", "sketch_error")
        return_estimates(*(shared[name] for name in names), *goal)


def _inverse_roots(indptr: IntArray) -> FloatArray:
    """(n,) degree^-1/2, 1 for isolated nodes."""
    return 1 / np.sqrt(np.maximum(np.diff(indptr), 1))


def _running_sums(indptr: IntArray, indices: IntArray, weight: FloatArray) -> FloatArray:
    """(slots,) sums of the neighbours' weights within a row, up to and with each slot."""
    running = np.cumsum(weight[indices])
    before = np.concatenate([[0.0], running])[indptr[:-1]]
    running -= np.repeat(before, np.diff(indptr))
    return running
