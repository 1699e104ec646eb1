"""Kernels that copy tokens out of a block's arrays, checking every index before it is used or handed on.

A block holds the sequences of its nodes one after the other, L = 1 + m*s tokens each, levels m..1 with s repeats, then
level 0. A view at (m', M', s') takes of each wanted token the prefix its first M' walks reached. The kernels are serial
and release the GIL: loader threads run them side by side.

Arguments they share: local (R,) nodes by place in the block, rows (R,) the batch rows they fill, chosen
(1 or B, m', s') which repeats, shape [m, M, s, m', M', s'] of the store and of the view. They return (code, token): 0,
or a key of FAULTS and the block's token where it was found. Arrays are mapped files that someone may change meanwhile:
what one kernel has checked, the next one that uses it checks again.
"""

import numpy as np
from numba import njit

from gmn_pipeline.kernel_cache import check_loaded_kernels

check_loaded_kernels()


FAULTS = {
    1: ("node_ptr", "a pointer goes down or beyond the nodes"),
    2: ("edge_ptr", "a pointer goes down or beyond the edges"),
    3: ("sizes", "a union size that does not fit its token"),
    4: ("edge_sizes", "an edge count that does not fit its token"),
    5: ("nodes", "a node id out of range"),
    6: ("nodes", "a first node that is not the token's own"),
    7: ("edges", "an index beyond the token's nodes"),
    8: ("edge_slots", "an edge slot out of range"),
    9: ("walks", "an index beyond the token's nodes"),
}


@njit(inline="always")
def _stored_position(t, row, chosen, shape):
    """Where the view's token t of batch row `row` stands in the stored sequence."""
    m, s, want_m, want_s = shape[0], shape[2], shape[3], shape[5]
    if t == want_m * want_s:
        return m * s
    level = want_m - t // want_s
    place = row if chosen.shape[0] > 1 else 0
    return (m - level) * s + chosen[place, level - 1, t % want_s]


@njit(cache=True, nogil=True)
def count_tokens(
    node_ptr,
    edge_ptr,
    sizes,
    edge_sizes,
    num_nodes,
    num_edges,
    local,
    rows,
    chosen,
    shape,
    out_nodes,
    out_edges,
):
    """Write each wanted token's node and edge count to out_nodes / out_edges (B*L',)."""
    length, want_length = 1 + shape[0] * shape[2], 1 + shape[3] * shape[5]
    walks = shape[4]
    for r in range(local.size):
        for t in range(want_length):
            token = local[r] * length + _stored_position(t, rows[r], chosen, shape)
            out = rows[r] * want_length + t
            begin, end = np.int64(node_ptr[token]), np.int64(node_ptr[token + 1])
            if begin < 0 or end <= begin or end > num_nodes:
                return 1, token
            first, last = np.int64(edge_ptr[token]), np.int64(edge_ptr[token + 1])
            if first < 0 or last < first or last > num_edges:
                return 2, token
            if t == want_length - 1:  # level 0 is the node alone, with its self-loop if the graph kept one
                if end - begin != 1:
                    return 3, token
                if last - first > 1:
                    return 4, token
                out_nodes[out] = 1
                out_edges[out] = last - first
                continue
            size = np.int64(sizes[token, walks - 1])
            if size < 1 or size > end - begin:
                return 3, token
            count = np.int64(edge_sizes[token, walks - 1])
            if count < 0 or count > last - first:
                return 4, token
            out_nodes[out] = size
            out_edges[out] = count
    return 0, 0


@njit(cache=True, nogil=True)
def copy_nodes(nodes, node_ptr, ids, local, rows, chosen, shape, num_nodes, out_ptr, out):
    """Copy the node lists of the wanted tokens to out[out_ptr[t]:out_ptr[t+1]]."""
    length, want_length = 1 + shape[0] * shape[2], 1 + shape[3] * shape[5]
    for r in range(local.size):
        for t in range(want_length):
            token = local[r] * length + _stored_position(t, rows[r], chosen, shape)
            place = out_ptr[rows[r] * want_length + t]
            count = out_ptr[rows[r] * want_length + t + 1] - place
            begin = np.int64(node_ptr[token])
            if begin < 0 or begin > nodes.shape[0] - count:
                return 1, token
            outside = False
            for i in range(count):
                node = nodes[begin + i]
                outside |= (node < 0) | (node >= num_nodes)
                out[place + i] = node
            if outside:
                return 5, token
            if out[place] != ids[rows[r]]:
                return 6, token
    return 0, 0


@njit(cache=True, nogil=True)
def copy_edges(edges, edge_ptr, local, rows, chosen, shape, out_node_ptr, out_ptr, out):
    """Copy the edges of the wanted tokens to out[out_ptr[t]:out_ptr[t+1]]."""
    length, want_length = 1 + shape[0] * shape[2], 1 + shape[3] * shape[5]
    for r in range(local.size):
        for t in range(want_length):
            token = local[r] * length + _stored_position(t, rows[r], chosen, shape)
            here = rows[r] * want_length + t
            size = out_node_ptr[here + 1] - out_node_ptr[here]
            begin, place = np.int64(edge_ptr[token]), out_ptr[here]
            if begin < 0 or begin > edges.shape[0] - (out_ptr[here + 1] - place):
                return 2, token
            outside = False
            for i in range(out_ptr[here + 1] - place):
                a, b = edges[begin + i, 0], edges[begin + i, 1]
                outside |= (a >= size) | (b >= size)
                out[place + i, 0] = a
                out[place + i, 1] = b
            if outside:
                return 7, token
    return 0, 0


@njit(cache=True, nogil=True)
def copy_slots(slots, edge_ptr, local, rows, chosen, shape, num_slots, out_ptr, out):
    """Copy the CSR slots of the wanted tokens' edges to out[out_ptr[t]:out_ptr[t+1]]."""
    length, want_length = 1 + shape[0] * shape[2], 1 + shape[3] * shape[5]
    for r in range(local.size):
        for t in range(want_length):
            token = local[r] * length + _stored_position(t, rows[r], chosen, shape)
            here = rows[r] * want_length + t
            begin, place = np.int64(edge_ptr[token]), out_ptr[here]
            if begin < 0 or begin > slots.shape[0] - (out_ptr[here + 1] - place):
                return 2, token
            outside = False
            for i in range(out_ptr[here + 1] - place):
                for column in range(slots.shape[1]):
                    slot = slots[begin + i, column]
                    outside |= (slot < 0) | (slot >= num_slots)
                    out[place + i, column] = slot
            if outside:
                return 8, token
    return 0, 0


@njit(cache=True, nogil=True)
def copy_walks(walks, local, rows, chosen, shape, out_node_ptr, out):
    """Copy the wanted walks to out[row], levels m'..1, the chosen repeats, the first M' walks, their steps."""
    m, M, s, want_m, want_M, want_s = shape
    length, want_length = 1 + m * s, 1 + want_m * want_s
    for r in range(local.size):
        row = rows[r]
        place = 0
        skipped = 0  # entries of one repeat of all levels above this one
        for level in range(m, want_m, -1):
            skipped += M * level
        for t in range(want_m * want_s):
            level = want_m - t // want_s
            repeat = chosen[row if chosen.shape[0] > 1 else 0, level - 1, t % want_s]
            begin = skipped * s + repeat * M * level
            size = out_node_ptr[row * want_length + t + 1] - out_node_ptr[row * want_length + t]
            outside = False
            for i in range(want_M * level):
                index = walks[local[r], begin + i]
                outside |= index >= size
                out[row, place] = index
                place += 1
            if outside:
                return 9, local[r] * length + (m - level) * s + repeat
            if t % want_s == want_s - 1:
                skipped += M * level
    return 0, 0
