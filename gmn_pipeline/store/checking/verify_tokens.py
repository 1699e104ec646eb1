"""Compares the tokens of a block with the graph: walks go along edges, and edges are exactly the induced ones."""

import threading
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.graph.pairs import first_slot, linked_pairs
from gmn_pipeline.store.format.schema import block_group

if TYPE_CHECKING:
    from gmn_pipeline.store.reading.reader import TokenStore

FAULTS = {
    1: ("sizes", "a last union size that is not the token's"),
    2: ("edge_sizes", "a last edge count that is not the token's"),
    3: ("nodes", "a node that stands twice"),
    4: ("walks", "a step that follows no edge"),
    5: ("walks", "nodes that are not in the order of first visits"),
    6: ("sizes", "a union size that the walks do not have"),
    7: ("edges", "edges out of order"),
    8: ("edges", "an edge that the graph does not have"),
    9: ("edges", "an edge of the graph left out"),
    10: ("edge_sizes", "an edge count that the unions do not have"),
    11: ("edge_slots", "a slot of another edge"),
}


class TokenChecker:
    """Checks block after block, also from several threads.

    Only for blocks whose pointers and ids the reader has already checked.
    """

    def __init__(self, store: "TokenStore") -> None:
        self._store = store
        self._pairs = linked_pairs(store.graph, with_slots=store.graph.directed)
        self._scratch = threading.local()

    def check(self, number: int) -> None:
        """Raise StoreCorruptError that names the array and the token."""
        nodes, scratch = self._store.num_nodes, self._scratch
        block, graph, settings, pairs = self._store.block(number), self._store.graph, self._store.settings, self._pairs
        if not hasattr(scratch, "place"):
            scratch.place = np.full(nodes, -1, dtype=np.int32)
            scratch.near = np.zeros((0, 0), dtype=np.uint64)
        largest = min(int((block["node_ptr"][1:] - block["node_ptr"][:-1]).max(initial=0)), nodes)
        if largest > len(scratch.near):
            scratch.near = np.zeros((largest, largest // 64 + 1), dtype=np.uint64)
        slots = block["edge_slots"] if "edge_slots" in block.opened else np.zeros((0, 0), dtype=np.int32)
        code, token = check_tokens(
            graph.indptr, graph.indices, graph.directed, pairs.pointer, pairs.other, pairs.out_slot, pairs.back_slot,
            np.array([settings.m, settings.M, settings.s]),
            block["nodes"], block["node_ptr"], block["edges"], block["edge_ptr"], block["walks"], block["sizes"],
            block["edge_sizes"], slots, scratch.place, scratch.near,
        )  # fmt: skip
        if code:
            del scratch.place  # it still has nodes of that token
            array, what = FAULTS[code]
            raise StoreCorruptError(f"{self._store.path}/{block_group(number)}/{array}: {what}, in token {token}")


@njit(inline="always")
def _is_set(near, i, j):
    return (near[i, j >> 6] >> np.uint64(j & 63)) & np.uint64(1) != 0


@njit(inline="always")
def _set(near, i, j):
    near[i, j >> 6] |= np.uint64(1) << np.uint64(j & 63)


@njit(cache=True, nogil=True)
def check_tokens(
    indptr, indices, directed, pair_ptr, pair_other, pair_out, pair_back, shape, nodes, node_ptr, edges, edge_ptr,
    walks, sizes, edge_sizes, slots, place, near,
):  # fmt: skip
    """(code, token): 0, or a key of FAULTS and the block's token.

    place (n,) -1 and near, bits of (largest token, largest token), are scratch. While a token is checked, place has
    where its nodes stand in it. The edges that the graph has among them are marked in `near` once; edges and steps of
    walks are then looked up there.
    """
    m, M, s = shape
    length = 1 + m * s
    for token in range(node_ptr.size - 1):
        row, position = token // length, token % length
        level = m - position // s if position < m * s else 0
        begin, size = np.int64(node_ptr[token]), np.int64(node_ptr[token + 1]) - np.int64(node_ptr[token])
        first, count = np.int64(edge_ptr[token]), np.int64(edge_ptr[token + 1]) - np.int64(edge_ptr[token])
        if M > 0 and sizes[token, M - 1] != size:
            return 1, token
        if M > 0 and edge_sizes[token, M - 1] != count:
            return 2, token
        for i in range(size):
            u = nodes[begin + i]
            if place[u] >= 0:
                return 3, token
            place[u] = i
        members = nodes[begin : begin + size]
        total = _mark_links(directed, pair_ptr, pair_other, pair_out, pair_back, members, place, near)
        for u in members:
            place[u] = -1

        seen = np.int64(1)
        entry = M * s * ((m * (m + 1)) // 2 - (level * (level + 1)) // 2) + (position % s if s > 0 else 0) * M * level
        for walk in range(M):
            at = np.int64(0)
            for _ in range(level):
                there = np.int64(walks[row, entry])
                entry += 1
                u = nodes[begin + at]
                if not _is_set(near, at, there) and not (there == at and indptr[u] == indptr[u + 1]):
                    return 4, token
                if there > seen:
                    return 5, token
                seen += there == seen
                at = there
            if sizes[token, walk] != seen:
                return 6, token
        if seen != size:
            return 5, token

        before = np.int64(-1)
        covered = 0
        for e in range(count):
            a, b = np.int64(edges[first + e, 0]), np.int64(edges[first + e, 1])
            if a > b and not directed:
                return 7, token
            key = (max(a, b) * size + min(a, b)) * 2 + (a > b)
            if key <= before:
                return 7, token
            before = key
            if not _is_set(near, a, b):
                return 8, token
            if slots.shape[1] > 0 and slots[first + e, 0] != first_slot(
                indptr, indices, nodes[begin + a], nodes[begin + b]
            ):
                return 11, token
            if slots.shape[1] > 1 and slots[first + e, 1] != first_slot(
                indptr, indices, nodes[begin + b], nodes[begin + a]
            ):
                return 11, token
            while covered < M and sizes[token, covered] <= max(a, b):
                if edge_sizes[token, covered] != e:
                    return 10, token
                covered += 1
        while covered < M:
            if edge_sizes[token, covered] != count:
                return 10, token
            covered += 1
        if total != count:
            return 9, token
    return 0, 0


@njit(inline="always")
def _mark_links(directed, pair_ptr, pair_other, pair_out, pair_back, members, place, near):
    """Mark the graph's edges among `members` in `near`, both ways if undirected; returns how many a token lists."""
    total = 0
    words = members.size // 64 + 1
    for i in range(members.size):
        for word in range(words):
            near[i, word] = 0
    for i in range(members.size):
        for p in range(pair_ptr[members[i]], pair_ptr[members[i] + 1]):
            j = place[pair_other[p]]
            if j < 0:
                continue
            if not directed or pair_out[p] >= 0:
                _set(near, i, j)
                total += 1
            if not directed:
                _set(near, j, i)
            elif pair_back[p] >= 0 and i != j:
                _set(near, j, i)
                total += 1
    return total
