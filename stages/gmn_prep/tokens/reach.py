"""The distinct nodes that one node's walks visit, and the links among them."""

from typing import NamedTuple

import numpy as np
from numba import njit

from gmn_pipeline.types import Array

_HASH = np.uint64(0x9E3779B97F4A7C15)


class Reach(NamedTuple):
    """Distinct nodes by first visit. A *place* is an index into `nodes`."""

    nodes: Array  # (1+W,) node ids
    table_node: Array  # open-addressing hash table: node ids, -1 where free; at most a quarter full
    table_place: Array  # their places
    home: Array  # (1+W,) each place's entry in the table, to clear it by
    shift: Array  # (1,) uint64: hash bits to drop
    step_place: Array  # (W,) each step of the walks as a place


class Links(NamedTuple):
    """Which places are linked, each pair once: those kept at place p are near[pointer[p]:pointer[p+1]]."""

    pointer: Array  # (2+W,)
    near: Array  # the pair's other place
    pair: Array  # its number in `Pairs`


@njit(nogil=True)
def longer(array, needed):
    """`array`, or a copy at least twice as long if it has fewer than `needed` rows."""
    if needed <= array.shape[0]:
        return array
    larger = np.empty((max(needed, 2 * array.shape[0]), *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


@njit(cache=True, nogil=True)
def new_reach(entries, indices):
    """Room for the walks of one node, `entries` steps; node ids as in `indices`."""
    bits = 4
    while (1 << bits) < 4 * (1 + entries):
        bits += 1
    return Reach(
        np.empty(1 + entries, indices.dtype),
        np.full(1 << bits, -1, indices.dtype),
        np.empty(1 << bits, np.int32),
        np.empty(1 + entries, np.int32),
        np.full(1, 64 - bits, np.uint64),
        np.empty(entries, np.int32),
    )


@njit(inline="always")
def _entry(table_node, shift, node):
    """Where `node` stands in the hash table, or the free entry where it belongs."""
    at = np.int64((np.uint64(node) * _HASH) >> shift)
    while (table_node[at] != node) & (table_node[at] >= 0):  # one branch, rarely taken: found or free ends it
        at = (at + 1) & (table_node.size - 1)
    return at


@njit(cache=True, nogil=True)
def number_reach(node, steps, reach):
    """Fill `reach` with the distinct nodes among `node` and `steps`; returns their count."""
    nodes, table_node, table_place, home, shifts, step_place = reach
    shift = shifts[0]
    at = _entry(table_node, shift, node)
    nodes[0], home[0] = node, at
    table_node[at], table_place[at] = node, 0
    count = 1
    for i in range(steps.size):
        at = _entry(table_node, shift, steps[i])
        if table_node[at] < 0:
            nodes[count], home[count] = steps[i], at
            table_node[at], table_place[at] = steps[i], count
            count += 1
        step_place[i] = table_place[at]
    return count


@njit(cache=True, nogil=True)
def link_reach(pair_ptr, pair_other, reach, count, links):
    """Find all links among the reach; returns `links`, with longer arrays where it needed them."""
    nodes, table_node, table_place, _, shifts, _ = reach
    pointer, near, pair = links
    shift = shifts[0]
    # Touch every list before reading any: the misses overlap instead of queueing behind mispredicted branches.
    most, touched = 0, np.int64(0)
    for place in range(count):
        begin, end = pair_ptr[nodes[place]], pair_ptr[nodes[place] + 1]
        most += end - begin
        if end > begin:
            touched += pair_other[begin] + pair_other[end - 1]
    pointer[count] = touched  # keeps the loads alive
    if most > near.size:
        near, pair = longer(near, most), longer(pair, most)
    total = 0
    for place in range(count):
        pointer[place] = total
        for p in range(pair_ptr[nodes[place]], pair_ptr[nodes[place] + 1]):
            # Whether a neighbour lies in the reach is a coin toss: count it without a branch.
            node = pair_other[p]
            at = _entry(table_node, shift, node)
            near[total] = table_place[at]
            pair[total] = p
            total += table_node[at] == node
    pointer[count] = total
    return Links(pointer, near, pair)
