"""Random walks. Every step is a function of (seed, node, level, repeat, walk, step) and the graph, of nothing else."""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import bounded, child_key

UNIFORM, NON_BACKTRACKING = 0, 1
WALK_LAWS = {"uniform": UNIFORM, "non-backtracking": NON_BACKTRACKING}


@njit(inline="always")
def step_uniform(indptr, indices, here, bits):
    """A neighbour of `here`, each slot equally likely; a dead end stays."""
    start = indptr[here]
    degree = indptr[here + 1] - start
    if degree == 0:
        return np.int64(here)
    return np.int64(indices[start + np.int64(bounded(bits, np.uint64(degree)))])


@njit(inline="always")
def step_forward(indptr, indices, here, before, bits):
    """A neighbour of `here` other than `before`; at a dead end the way back, or none at all."""
    start, end = indptr[here], indptr[here + 1]
    if before < 0 or end == start:
        return step_uniform(indptr, indices, here, bits)
    # Rows are sorted, so the slots that lead back are one run [low, high): draw among the others.
    low = start
    high = end
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < before:
            low = middle + 1
        else:
            high = middle
    high = low
    while high < end and indices[high] == before:
        high += 1
    others = (end - start) - (high - low)
    if others == 0:
        return np.int64(before)
    slot = start + np.int64(bounded(bits, np.uint64(others)))
    if slot >= low:
        slot += high - low
    return np.int64(indices[slot])


@njit(inline="always")
def draw_walk_keys(node_key, m, M, s, keys):
    """Fill keys (s*M*m,) for the walks of one node, in sequence order: levels m..1, repeats, walks."""
    w = 0
    for level in range(m, 0, -1):
        level_key = child_key(node_key, np.uint64(level))
        for repeat in range(s):
            repeat_key = child_key(level_key, np.uint64(repeat))
            for walk in range(M):
                keys[w] = child_key(repeat_key, np.uint64(walk))
                w += 1


@njit(inline="always")
def walk_from(indptr, indices, law, node, m, walks_per_level, keys, here, before, offsets, out):
    """Take all walks of one node and write step t of walk w to out[offsets[w] + t].

    The walks advance together, one step each per round: their memory accesses are independent, so the processor
    overlaps them (2.9x the steps per second of one walk after the other, one thread, ogbn-arxiv at 8/4/2).
    """
    total = keys.size
    for w in range(total):
        here[w] = node
        before[w] = -1
    for t in range(m):
        active = total - walks_per_level * t  # longer walks stand first
        step = np.uint64(t)
        if law == UNIFORM:
            for w in range(active):
                here[w] = step_uniform(indptr, indices, here[w], child_key(keys[w], step))
                out[offsets[w] + t] = here[w]
        else:
            for w in range(active):
                there = step_forward(indptr, indices, here[w], before[w], child_key(keys[w], step))
                before[w] = here[w]
                here[w] = there
                out[offsets[w] + t] = there


@njit(cache=True, nogil=True)
def walk_offsets(m, M, s):
    """Where each walk of a node begins in its list of steps, (s*M*m,) int64."""
    offsets = np.empty(s * M * m, dtype=np.int64)
    w, at = 0, 0
    for level in range(m, 0, -1):
        for _ in range(s * M):
            offsets[w] = at
            w += 1
            at += level
    return offsets


@njit(cache=True, nogil=True)
def sample_walks(indptr, indices, root, law, first, last, m, M, s, out):
    """Walks of nodes first..last-1 as node ids, out (last-first, W): levels m..1, repeats, walks, steps 1..level."""
    offsets = walk_offsets(m, M, s)
    keys = np.empty(offsets.size, dtype=np.uint64)
    here, before = np.empty(offsets.size, dtype=np.int64), np.empty(offsets.size, dtype=np.int64)
    for node in range(first, last):
        draw_walk_keys(child_key(root, np.uint64(node)), m, M, s, keys)
        walk_from(indptr, indices, law, node, m, s * M, keys, here, before, offsets, out[node - first])
