"""Compares the tokens of a block with the graph: walks go along edges, and edges are exactly the induced ones."""

import threading
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.schema import block_group

if TYPE_CHECKING:
    from gmn_pipeline.store.reader import TokenStore

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
        self._scratch = threading.local()

    def check(self, number: int) -> None:
        """Raise StoreCorruptError that names the array and the token."""
        nodes, scratch = self._store.num_nodes, self._scratch
        if not hasattr(scratch, "owner"):
            scratch.owner, scratch.place = np.full(nodes, -1, dtype=np.int64), np.zeros(nodes, dtype=np.int32)
        block, graph, settings = self._store.block(number), self._store.graph, self._store.settings
        slots = block["edge_slots"] if "edge_slots" in block.opened else np.zeros((0, 0), dtype=np.int32)
        code, token = check_tokens(
            graph.indptr, graph.indices, graph.directed, block.facts.first_node,
            np.array([settings.m, settings.M, settings.s]),
            block["nodes"], block["node_ptr"], block["edges"], block["edge_ptr"], block["walks"], block["sizes"],
            block["edge_sizes"], slots, scratch.owner, scratch.place,
        )  # fmt: skip
        if code:
            array, what = FAULTS[code]
            raise StoreCorruptError(f"{self._store.path}/{block_group(number)}/{array}: {what}, in token {token}")


@njit(inline="always")
def _first_slot(indptr, indices, u, v):
    """The first slot of row u that holds v, or -1."""
    low, high = indptr[u], indptr[u + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low if low < end and indices[low] == v else np.int64(-1)


@njit(cache=True, nogil=True)
def check_tokens(
    indptr, indices, directed, first_node, shape, nodes, node_ptr, edges, edge_ptr, walks, sizes, edge_sizes, slots,
    owner, place,
):  # fmt: skip
    """(code, token): 0, or a key of FAULTS and the block's token. owner (n,) -1 and place (n,) are scratch."""
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
        stamp = first_node * length + token
        for i in range(size):
            u = nodes[begin + i]
            if owner[u] == stamp:
                return 3, token
            owner[u], place[u] = stamp, i

        seen = np.int64(1)
        entry = M * s * ((m * (m + 1)) // 2 - (level * (level + 1)) // 2) + (position % s if s > 0 else 0) * M * level
        for walk in range(M):
            at = np.int64(0)
            for _ in range(level):
                there = np.int64(walks[row, entry])
                entry += 1
                u, v = nodes[begin + at], nodes[begin + there]
                stays = indptr[u] == indptr[u + 1] and there == at
                if not stays and _first_slot(indptr, indices, u, v) < 0:
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
            there = _first_slot(indptr, indices, nodes[begin + a], nodes[begin + b])
            if there < 0:
                return 8, token
            if slots.shape[1] > 0 and slots[first + e, 0] != there:
                return 11, token
            if slots.shape[1] > 1 and slots[first + e, 1] != _first_slot(
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
        if _count_induced(indptr, indices, directed, nodes, begin, size, owner, place, stamp) != count:
            return 9, token
    return 0, 0


@njit(inline="always")
def _count_induced(indptr, indices, directed, nodes, begin, size, owner, place, stamp):
    """Edges of the graph among the token's nodes, parallel ones once; undirected from their smaller place."""
    total = 0
    for i in range(size):
        u = nodes[begin + i]
        if indptr[u + 1] - indptr[u] > 16 * size:  # a hub: rather look for each of the few others
            for j in range(0 if directed else i, size):
                total += _first_slot(indptr, indices, u, nodes[begin + j]) >= 0
            continue
        for slot in range(indptr[u], indptr[u + 1]):
            v = indices[slot]
            if slot > indptr[u] and indices[slot - 1] == v:
                continue
            total += owner[v] == stamp and (directed or place[v] >= i)
    return total
