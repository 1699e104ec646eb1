"""Each linked pair of nodes once, kept at its end of lower degree.

Finding the edges among a set of nodes then costs the sum of these short lists. Hubs, which walks visit most, keep few
pairs: on ogbn-arxiv at 8/4/2 the mean list of a visited node shrinks from 211 neighbours to 11.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from gmn_pipeline.errors import GraphError, StoreError
from gmn_pipeline.graph.container import Graph
from gmn_pipeline.graph.edges import csr_from_edges, small_degrees
from gmn_pipeline.graph.settle import check_pointer, id_dtype
from gmn_pipeline.types import IntArray


@dataclass(frozen=True)
class Pairs:
    """Linked pairs in CSR form: those kept at node u are pointer[u] .. pointer[u+1]."""

    pointer: IntArray
    """(n+1,) int64"""
    other: IntArray
    """(P,) the pair's other end."""
    out_slot: IntArray
    """(P,) CSR slot u -> other, -1 where a directed graph has none; empty unless slots are asked for."""
    back_slot: IntArray
    """(P,) CSR slot other -> u, likewise."""

    def check(self, nodes: int, slots: int) -> None:
        """Raise StoreError unless no index points outside a graph of this size: the kernel checks none."""
        ends = (self.other, nodes, 0), (self.out_slot, slots, -1), (self.back_slot, slots, -1)
        sizes = {self.other.size, *((self.out_slot.size, self.back_slot.size) if slots else ())}
        try:
            check_pointer("pointer", self.pointer, self.other.size)
            if self.pointer.size != nodes + 1 or len(sizes) > 1:
                raise GraphError("sizes differ")
            for ids, most, least in ends:
                if ids.size and (ids.min() < least or ids.max() >= most):
                    raise GraphError("an index points outside the graph")
        except GraphError as error:
            raise StoreError(f"the linked pairs beside the store are damaged ({error}); plan the store again") from None


def linked_pairs(graph: Graph, *, with_slots: bool, make: Callable[..., Any] = np.empty) -> Pairs:
    """The linked pairs of a graph; parallel edges count once, by their first slot.

    make: gives an array of a shape and a type, in memory or on disk.
    """
    n = graph.num_nodes
    if graph.directed:
        indptr, indices, _, _ = csr_from_edges(
            graph.slot_sources.astype(np.int64), graph.indices.astype(np.int64), n,
            directed=False, keep_self_loops=True, keep_duplicates=False,
        )  # fmt: skip
        indices = indices.astype(graph.indices.dtype)
    else:
        indptr, indices = graph.indptr, graph.indices
    degree = small_degrees(indptr)
    pointer = make(n + 1, np.int64)
    pointer[0] = 0
    _count_pairs(indptr, indices, degree, pointer[1:])
    np.cumsum(pointer, out=pointer)
    other = make(int(pointer[-1]), indices.dtype)
    _fill_pairs(indptr, indices, degree, pointer, other)
    slots = np.empty((2, pointer[-1] if with_slots else 0), dtype=id_dtype(graph.num_slots))
    if with_slots:
        _find_slots(graph.indptr, graph.indices, pointer, other, slots[0], slots[1])
    pointer, other = (np.asarray(array) for array in (pointer, other))
    for array in (pointer, other, slots):
        array.flags.writeable = False  # as mapped ones are: kernels are compiled once for both
    return Pairs(pointer, other, slots[0], slots[1])


@njit(inline="always")
def _keeps(degree, u, w):
    """Whether the pair (u, w) is kept at u: the end of lower degree, of equal ones the smaller id."""
    return degree[u] < degree[w] or (degree[u] == degree[w] and u <= w)


@njit(cache=True, nogil=True)
def _count_pairs(indptr, indices, degree, counts):
    for u in range(indptr.size - 1):
        counts[u] = 0
        for slot in range(indptr[u], indptr[u + 1]):
            w = indices[slot]
            repeated = slot > indptr[u] and indices[slot - 1] == w
            if not repeated and _keeps(degree, u, w):
                counts[u] += 1


@njit(cache=True, nogil=True)
def _fill_pairs(indptr, indices, degree, pointer, other):
    for u in range(indptr.size - 1):
        at = pointer[u]
        for slot in range(indptr[u], indptr[u + 1]):
            w = indices[slot]
            repeated = slot > indptr[u] and indices[slot - 1] == w
            if not repeated and _keeps(degree, u, w):
                other[at] = w
                at += 1


@njit(inline="always")
def first_slot(indptr, indices, u, w):
    """The first slot u -> w, or -1."""
    low, high = indptr[u], indptr[u + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < w:
            low = middle + 1
        else:
            high = middle
    return low if low < end and indices[low] == w else -1


@njit(cache=True, nogil=True)
def _find_slots(indptr, indices, pointer, other, out_slot, back_slot):
    for u in range(pointer.size - 1):
        for p in range(pointer[u], pointer[u + 1]):
            out_slot[p] = first_slot(indptr, indices, u, other[p])
            back_slot[p] = first_slot(indptr, indices, other[p], u)
