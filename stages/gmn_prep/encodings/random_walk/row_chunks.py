"""Work split by rows: chunks that depend only on the graph, run by any number of threads."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, IntArray
from gmn_prep.encodings import OnProgress

Chunk = tuple[int, int]


def row_chunks(weights_ptr: IntArray, parts: int) -> list[Chunk]:
    """Cut rows into at most `parts` ranges of about equal weight.

    weights_ptr: (rows+1,) running weight, e.g. a CSR indptr. A row counts 1 besides its weight.
    """
    rows = weights_ptr.size - 1
    running = weights_ptr + np.arange(rows + 1)
    goals = np.linspace(0, running[-1], parts + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(running, goals), [rows]]))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def encoding_chunks(graph: Graph, shared: Mapping[str, Array], parts: int = 128) -> list[Chunk]:
    """The ranges of rows that an encoding is cut into; `shared` may bring a renumbered graph's `indptr`."""
    return row_chunks(shared.get("indptr", graph.indptr), parts)


class Workers:
    """A pool of threads that runs `nogil` kernels over chunks. Use as made by `workers`."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def run(self, function: Callable[[int, int], Any], chunks: Sequence[Chunk]) -> list[Any]:
        """`function(lo, hi)` of every chunk; the results in the order of the chunks."""
        return list(self._pool.map(lambda chunk: function(*chunk), chunks))

    def run_reporting(
        self, function: Callable[[int, int], Any], chunks: Sequence[Chunk], on_progress: OnProgress | None, total: int
    ) -> None:
        """As `run`, telling the calling thread's `on_progress` how many of `total` rows are done."""
        futures = {self._pool.submit(function, lo, hi): hi - lo for lo, hi in chunks}
        done = 0
        try:
            for future in as_completed(futures):
                future.result()
                done += futures[future]
                if on_progress is not None:
                    on_progress(done, total)
        finally:
            for future in futures:
                future.cancel()


@contextmanager
def workers(threads: int) -> Iterator[Workers]:
    """`threads` workers; BLAS keeps to one thread meanwhile, so that sums have one order whatever `threads` is."""
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(max(1, threads)) as pool:
        yield Workers(pool)
