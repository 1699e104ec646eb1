"""What is drawn anew for each training epoch, as pure functions of (seed, epoch) and of what it is for.

`epoch=None` means evaluation: always the same draw, and no sign flips. Nothing depends on batches or threads.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, bounded, child_key, key_path
from gmn_pipeline.types import Array, FloatArray, IntArray, UInt64Array


def epoch_key(seed: int, purpose: Purpose, epoch: int | None) -> np.uint64:
    """The key of one epoch's draws; evaluation has its own."""
    return key_path(seed, purpose, 0 if epoch is None else epoch + 1)


def draw_repeats(seed: int, epoch: int | None, node_ids: Array, m: int, s: int, stored: int) -> IntArray:
    """(B, m, s): which of `stored` repeats stand at each place of levels 1..m, without repetition."""
    out = np.empty((len(node_ids), m, s), dtype=np.int64)
    fill_repeats(epoch_key(seed, Purpose.REPEATS, epoch), np.asarray(node_ids, np.int64), stored, out)
    return out


@njit(cache=True, nogil=True)
def fill_repeats(key, node_ids, stored, out):
    """The first s places of a Fisher-Yates shuffle for every node and level."""
    deck = np.empty(stored, np.int64)
    for b in range(out.shape[0]):
        node_key = child_key(key, np.uint64(node_ids[b]))
        for level in range(out.shape[1]):
            level_key = child_key(node_key, np.uint64(level))
            for i in range(stored):
                deck[i] = i
            for i in range(out.shape[2]):
                at = i + np.int64(bounded(child_key(level_key, np.uint64(i)), np.uint64(stored - i)))
                deck[i], deck[at] = deck[at], deck[i]
                out[b, level, i] = deck[i]


def draw_ties(seed: int, epoch: int | None, node_ids: Array) -> UInt64Array:
    """(B,) 64 random bits per node, by which nodes of equal rank are ordered."""
    out = np.empty(len(node_ids), dtype=np.uint64)
    fill_ties(epoch_key(seed, Purpose.ORDER_TIES, epoch), np.asarray(node_ids, np.int64), out)
    return out


@njit(cache=True, nogil=True)
def fill_ties(key, node_ids, out):
    for b in range(out.size):
        out[b] = child_key(key, np.uint64(node_ids[b]))


def draw_signs(seed: int, epoch: int | None, graphs: Array, columns: int) -> FloatArray:
    """(graphs, columns) float32 of -1 and 1 for Laplacian eigenvectors; all 1 in evaluation."""
    signs = np.ones((len(graphs), columns), dtype=np.float32)
    if epoch is not None:
        fill_signs(epoch_key(seed, Purpose.SIGN_FLIP, epoch), np.asarray(graphs, np.int64), signs)
    return signs


@njit(cache=True, nogil=True)
def fill_signs(key, graphs, out):
    for g in range(out.shape[0]):
        graph_key = child_key(key, np.uint64(graphs[g]))
        for column in range(out.shape[1]):
            if child_key(graph_key, np.uint64(column)) >> np.uint64(63):
                out[g, column] = -1
