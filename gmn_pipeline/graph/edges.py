"""From an edge list to sorted CSR slots, in linear time and without temporary pair keys."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from gmn_pipeline.graph.settle import id_dtype
from gmn_pipeline.kernel_cache import check_loaded_kernels
from gmn_pipeline.types import IntArray

check_loaded_kernels()


@dataclass(frozen=True)
class EdgeReport:
    """What building a graph did to the edges it was given."""

    given: int = 0
    self_loops_dropped: int = 0
    duplicates_dropped: int = 0
    """Edges given more than once in the same direction."""
    reverses_added: int = 0
    """Edges given in one direction only, now there in both."""

    def __str__(self) -> str:
        return (
            f"{self.given:,} edges given, {self.self_loops_dropped:,} self-loops and "
            f"{self.duplicates_dropped:,} duplicates dropped, {self.reverses_added:,} reverses added"
        )


@njit(cache=True, nogil=True)
def _count_rows(rows, counts):
    for i in range(rows.size):
        counts[rows[i]] += 1


@njit(cache=True, nogil=True)
def _place_stable(rows, order, cursor, out):
    """One pass of a least-significant-digit sort: `out` lists `order` by rows[order], equal rows as they were."""
    for i in range(order.size):
        e = order[i]
        r = rows[e]
        out[cursor[r]] = e
        cursor[r] += 1


def _starts(rows: IntArray, n: int) -> IntArray:
    """(n+1,) int64: where each row begins once the edges are sorted by row."""
    counts = np.zeros(n + 1, dtype=np.int64)
    _count_rows(rows, counts[1:])
    return np.cumsum(counts)


def sort_edges(src: IntArray, dst: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Order the edges by (src, dst), equal ones as given.

    Returns (indptr (n+1,) int64, order (E,) int64): row v of the CSR is src/dst[order[indptr[v]:indptr[v+1]]].
    """
    by_dst = np.empty(src.size, dtype=np.int64)
    _place_stable(dst, np.arange(src.size, dtype=np.int64), _starts(dst, n), by_dst)
    indptr = _starts(src, n)
    order = np.empty(src.size, dtype=np.int64)
    _place_stable(src, by_dst, indptr.copy(), order)
    return indptr, order


def csr_from_edges(
    src: IntArray,
    dst: IntArray,
    n: int,
    *,
    directed: bool,
    keep_self_loops: bool,
    keep_duplicates: bool,
) -> tuple[IntArray, IntArray, IntArray, EdgeReport]:
    """Build sorted CSR slots from an edge list whose ids are already known to lie in [0, n).

    Undirected unless `directed`: each edge is mirrored. Of equal slots the first wins, edges as given before mirrored
    ones; with `keep_duplicates` all stay, each edge given being an undirected edge of its own.
    Returns (indptr, indices, origin, report); origin[slot] is the given edge the slot comes from.
    """
    given = src.size
    origin = np.arange(given, dtype=np.int64)
    loops = src == dst
    loop_count = int(np.count_nonzero(loops))
    if loop_count and not keep_self_loops:
        origin = origin[~loops]
        src, dst = src[~loops], dst[~loops]
    kept_before_mirror = src.size
    if not directed:
        off_diagonal = src != dst  # a self-loop is its own reverse
        mirror_src, mirror_dst = dst[off_diagonal], src[off_diagonal]
        origin = np.concatenate([origin, origin[off_diagonal]])
        src, dst = np.concatenate([src, mirror_src]), np.concatenate([dst, mirror_dst])

    indptr, order = sort_edges(src, dst, n)
    sorted_src, sorted_dst = src[order], dst[order]
    repeated = np.zeros(order.size, dtype=bool)
    if order.size:
        repeated[1:] = (sorted_src[1:] == sorted_src[:-1]) & (sorted_dst[1:] == sorted_dst[:-1])
    # Mirrored edges sort behind given ones, so a given slot is repeated only by an earlier given one.
    given_slots = order < kept_before_mirror
    keep = np.ones(order.size, dtype=bool) if keep_duplicates else ~repeated
    duplicates = 0 if keep_duplicates else int(np.count_nonzero(repeated & given_slots))
    kept = order[keep]
    report = EdgeReport(
        given=given,
        self_loops_dropped=0 if keep_self_loops else loop_count,
        duplicates_dropped=duplicates,
        reverses_added=int(np.count_nonzero(kept >= kept_before_mirror)),
    )
    indptr = _starts(src[kept], n)
    return indptr, dst[kept], origin[kept], report


def small_degrees(indptr: IntArray) -> IntArray:
    """(n,) slots per node, in the smallest of int32 and int64 that holds them."""
    degree = np.empty(indptr.size - 1, id_dtype(_largest_degree(indptr)))
    _fill_degrees(indptr, degree)
    return degree


@njit(cache=True, nogil=True)
def _largest_degree(indptr):
    most = 0
    for u in range(indptr.size - 1):
        most = max(most, indptr[u + 1] - indptr[u])
    return most


@njit(cache=True, nogil=True)
def _fill_degrees(indptr, out):
    for u in range(out.size):
        out[u] = indptr[u + 1] - indptr[u]
