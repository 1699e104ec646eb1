"""A neighbourhood's edges in order of their targets and of their sources, so that sums per node have no races."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from typing import NamedTuple

import numpy as np
from numba import njit
from torch import Tensor

from gmn_pipeline.types import IntArray

ROWS_PER_TASK = 512


class EdgeOrder(NamedTuple):
    """Edges by target: edge p goes sources[p] -> the row r with target_ptr[r] <= p < target_ptr[r + 1]."""

    target_ptr: IntArray  # (S+1,)
    sources: IntArray  # (E,)
    edges: IntArray  # (E,) number of each in the edge index
    targets: IntArray  # (E,)
    source_ptr: IntArray  # (S+1,): by source, the places in the order above
    places: IntArray  # (E,)


def order_edges(edge_index: Tensor, rows: int) -> EdgeOrder:
    """Of (2, E) source and target rows."""
    source, target = (row.contiguous().numpy() for row in edge_index)
    target_ptr, edges = rows_by_key(target, rows)
    sources = source[edges]
    source_ptr, places = rows_by_key(sources, rows)
    return EdgeOrder(target_ptr, sources, edges, target[edges], source_ptr, places)


@njit(cache=True, nogil=True)
def rows_by_key(keys, count):
    """Pointers (count + 1,) and the indices of `keys` in order of key, equal ones as they stand: a counting sort."""
    pointer = np.zeros(count + 1, np.int64)
    for i in range(keys.size):
        pointer[keys[i] + 1] += 1
    for k in range(count):
        pointer[k + 1] += pointer[k]
    order, place = np.empty(keys.size, np.int64), pointer[:-1].copy()
    for i in range(keys.size):
        order[place[keys[i]]] = i
        place[keys[i]] += 1
    return pointer, order


def row_ranges(rows: int) -> list[tuple[int, int]]:
    """Tasks of rows, the same for any number of threads."""
    return [(r, min(r + ROWS_PER_TASK, rows)) for r in range(0, rows, ROWS_PER_TASK)]
