"""What the generators of shuffled 4-regular rings share: how large their graphs are, and how nodes are shuffled."""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import bounded, child_key

SMALLEST, LARGEST = 24, 48
DEGREE = 4
SIZE = np.uint64(0)
"""The child of a graph's key that decides its size."""


def draw_graph_ptr(key: np.uint64, graphs: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Borders of the graphs, (graphs + 1,), of 24 to 48 nodes each."""
    graph_ptr = np.zeros(graphs + 1, dtype=np.int64)
    draw_sizes(key, graph_ptr[1:])
    np.cumsum(graph_ptr, out=graph_ptr)
    return graph_ptr


@njit(cache=True, nogil=True)
def draw_sizes(key, out):  # type: ignore[no-untyped-def]
    for g in range(out.size):
        bits = child_key(child_key(key, np.uint64(g)), SIZE)
        out[g] = SMALLEST + bounded(bits, np.uint64(LARGEST - SMALLEST + 1))


@njit(cache=True, nogil=True)
def shuffled_names(key, n):  # type: ignore[no-untyped-def]
    """Place on the ring -> node number."""
    keys = np.empty(n, dtype=np.uint64)
    for i in range(n):
        keys[i] = child_key(key, np.uint64(i))
    return np.argsort(keys)
