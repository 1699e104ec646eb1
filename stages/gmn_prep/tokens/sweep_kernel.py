"""Walks of many nodes, step by step together and in the order of the nodes they stand on.

Each round reads the graph from its beginning to its end, so a graph on disk is read in order, not at random.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import child_key
from gmn_prep.tokens.walks import UNIFORM, step_forward, step_uniform

_M1, _M2, _M4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_ONES, _1, _2, _4, _56 = np.uint64(0x0101010101010101), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@njit(inline="always")
def _stands(first, node, at, step, out):
    """Where a walker of node first + node is before a step; at: its place in out[node], which holds where it went."""
    return np.int64(out[node, at + step - 1]) if step > 0 else np.int64(first + node)


@njit(cache=True, nogil=True)
def order_walkers(first, step, active, offsets, out, shift, start, order):
    """List the active walkers by the part of the graph (`node >> shift`) they stand in; returns how many.

    Walker w of node i is number i * total + w; those with w < active walk on. out: (nodes, W) the steps so far.
    start: (parts + 1,).
    """
    start[:] = 0
    for node in range(out.shape[0]):
        for w in range(active):
            start[(_stands(first, node, offsets[w], step, out) >> shift) + 1] += 1
    for part in range(start.size - 1):
        start[part + 1] += start[part]
    for node in range(out.shape[0]):
        for w in range(active):
            part = _stands(first, node, offsets[w], step, out) >> shift
            order[start[part]] = node * offsets.size + w
            start[part] += 1
    return active * out.shape[0]


@njit(cache=True, nogil=True)
def take_steps(indptr, indices, root, law, first, step, m, M, s, offsets, order, out):
    """Move the walkers that `order` lists by one step and write it to out (nodes, W)."""
    total = offsets.size
    for i in range(order.size):
        node, w = order[i] // total, order[i] % total
        at = offsets[w]
        key = child_key(child_key(root, np.uint64(first + node)), np.uint64(m - w // (s * M)))
        key = child_key(child_key(key, np.uint64(w % (s * M) // M)), np.uint64(w % M))
        bits, here = child_key(key, np.uint64(step)), _stands(first, node, at, step, out)
        if law == UNIFORM:
            out[node, at + step] = step_uniform(indptr, indices, here, bits)
        else:
            before = _stands(first, node, at, step - 1, out) if step > 0 else np.int64(-1)
            out[node, at + step] = step_forward(indptr, indices, here, before, bits)


@njit(inline="always")
def _ones(word):
    """Bits that are set in 64."""
    word = word - ((word >> _1) & _M1)
    word = (word & _M2) + ((word >> _2) & _M2)
    word = (word + (word >> _4)) & _M4
    return np.int64((word * _ONES) >> _56)


@njit(inline="always")
def _mark(bits, node):
    bits[node >> 6] |= _1 << np.uint64(node & 63)


@njit(inline="always")
def _number(bits, before, node):
    """How many marked nodes are smaller, or -1 if the node is not marked."""
    word, bit = bits[node >> 6], _1 << np.uint64(node & 63)
    return before[node >> 6] + _ones(word & (bit - _1)) if word & bit else np.int64(-1)


@njit(cache=True, nogil=True)
def mark_nodes(first, walks, bits, before):
    """Mark the nodes of `walks` and their starts, and count those before each 64; returns the count of all."""
    bits[:] = np.uint64(0)
    for node in range(walks.shape[0]):
        _mark(bits, first + node)
        for i in range(walks.shape[1]):
            _mark(bits, np.int64(walks[node, i]))
    count = 0
    for word in range(bits.size):
        before[word] = count
        count += _ones(bits[word])
    return count


@njit(cache=True, nogil=True)
def list_marked(bits, pair_ptr, names):
    """The marked nodes, ascending, in `names`; returns how many pairs they keep together."""
    count, pairs = 0, 0
    for word in range(bits.size):
        if bits[word] == 0:
            continue
        for bit in range(64):
            if bits[word] >> np.uint64(bit) & _1:
                node = 64 * word + bit
                names[count] = node
                count += 1
                pairs += pair_ptr[node + 1] - pair_ptr[node]
    return pairs


@njit(cache=True, nogil=True)
def renumber(bits, before, names, pair_ptr, pair_other, walks, pointer, other):
    """Name nodes by their place in `names`: walks in place, and the pairs of marked nodes with both ends marked."""
    for node in range(walks.shape[0]):
        for i in range(walks.shape[1]):
            walks[node, i] = _number(bits, before, np.int64(walks[node, i]))
    count = 0
    pointer[0] = 0
    for i in range(names.size):
        for pair in range(pair_ptr[names[i]], pair_ptr[names[i] + 1]):
            place = _number(bits, before, np.int64(pair_other[pair]))
            if place >= 0:
                other[count] = place
                count += 1
        pointer[i + 1] = count
    return count
