"""Estimated return probabilities of a directed graph, by counting walks that are back."""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import bounded, child_key

PILOT = 256
"""Walks that only tell how many walks a node needs."""


@njit(cache=True, nogil=True)
def count_returns(indptr, indices, key, target, out, error, lo, hi):  # type: ignore[no-untyped-def]
    """out[v - lo, j] is the share of walks from v that are at v after j+1 steps, error[v - lo, j] its standard error.

    out, error: (hi - lo, k). A node without out-edges keeps its walk. Draws are keyed (node, walk, step). The number of
    walks is set by a pilot whose draws are not used again, so that the share stays unbiased. Shares and errors are
    binomial; the error takes (hits + 1) / (walks + 2) as the probability, so that no hit does not look certain.
    """
    k = out.shape[1]
    hits = np.zeros(k, np.int64)
    for start in range(lo, hi):
        if indptr[start] == indptr[start + 1]:
            out[start - lo, :] = 1.0
            error[start - lo, :] = 0.0
            continue
        node_key = child_key(key, np.uint64(start))
        _walk(indptr, indices, node_key, start, 0, PILOT, hits)
        most = 0.0
        for j in range(k):
            p = (hits[j] + 4) / (PILOT + 8)  # cautious: too few walks would miss the target
            most = max(most, p * (1 - p))
        walks = int(np.ceil(1.1 * most / target**2)) + 2
        _walk(indptr, indices, node_key, start, PILOT, walks, hits)
        for j in range(k):
            p = (hits[j] + 1) / (walks + 2)
            out[start - lo, j] = hits[j] / walks
            error[start - lo, j] = np.sqrt(p * (1 - p) / walks)


@njit(cache=True, nogil=True)
def _walk(indptr, indices, node_key, start, first, count, hits):  # type: ignore[no-untyped-def]
    """hits[j] = how many of walks first .. first+count are at `start` after j+1 steps."""
    hits[:] = 0
    for walk in range(first, first + count):
        walk_key = child_key(node_key, np.uint64(walk))
        v = start
        for j in range(hits.size):
            degree = indptr[v + 1] - indptr[v]
            if degree > 0:
                v = indices[indptr[v] + np.int64(bounded(child_key(walk_key, np.uint64(j)), np.uint64(degree)))]
            if v == start:
                hits[j] += 1
