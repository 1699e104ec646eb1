"""Passes over a graph's edges that hold one number per node, so that graphs larger than memory can be checked."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def first_unsorted(indptr, indices):
    """The first node whose neighbours do not ascend, or -1."""
    for node in range(indptr.size - 1):
        for slot in range(indptr[node] + 1, indptr[node + 1]):
            if indices[slot] < indices[slot - 1]:
                return node
    return -1


@njit(cache=True, nogil=True)
def is_symmetric(indptr, indices):
    """Whether every slot has its reverse, and as often; rows are sorted.

    Nodes come in order, so those that list w must be the neighbours of w, one after the other.
    """
    matches = np.zeros(indptr.size - 1, np.int64)
    for node in range(indptr.size - 1):
        for slot in range(indptr[node], indptr[node + 1]):
            w = indices[slot]
            reverse = indptr[w] + matches[w]
            if reverse >= indptr[w + 1] or indices[reverse] != node:
                return False
            matches[w] += 1
    return True
