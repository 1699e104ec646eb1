"""Exact return probabilities, row by row, with sparse accumulators."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def return_rows(indptr, indices, inverse_root, out, lo, hi):  # type: ignore[no-untyped-def]
    """out[v - lo, j] = P^(j+1)(v, v) for nodes lo .. hi of an undirected graph; out: (hi - lo, k).

    With s_j row v of S^j, S = D^-1/2 A D^-1/2: P^2j(v, v) = <s_j, s_j> and P^(2j+1)(v, v) = <s_j, s_j+1>, so k
    probabilities take k/2 expansions. inverse_root: (n,) degree^-1/2.
    """
    n, k = inverse_root.size, out.shape[1]
    total = np.zeros(n)
    nodes, values = np.empty(n, np.int64), np.empty(n)
    grown = np.empty(n, np.int64)
    for start in range(lo, hi):
        if indptr[start] == indptr[start + 1]:
            out[start - lo, :] = 1.0  # a walk from an isolated node stays there
            continue
        nodes[0], values[0], count = start, 1.0, 1
        for j in range((k + 1) // 2):
            count_grown = 0
            for i in range(count):
                u = nodes[i]
                push = values[i] * inverse_root[u]
                for slot in range(indptr[u], indptr[u + 1]):
                    v = indices[slot]
                    if total[v] == 0.0:
                        grown[count_grown] = v
                        count_grown += 1
                    total[v] += push
            odd, even = 0.0, 0.0
            for i in range(count):
                u = nodes[i]
                odd += values[i] * total[u] * inverse_root[u]
            for i in range(count_grown):
                v = grown[i]
                values[i] = total[v] * inverse_root[v]
                even += values[i] * values[i]
                total[v] = 0.0
            out[start - lo, 2 * j] = odd
            if 2 * j + 1 < k:
                out[start - lo, 2 * j + 1] = even
            nodes, grown, count = grown, nodes, count_grown


@njit(cache=True, nogil=True)
def return_rows_directed(indptr, indices, out, lo, hi):  # type: ignore[no-untyped-def]
    """The same for a directed graph, by k expansions of row v of P itself. A node without out-edges keeps its walk."""
    n, k = indptr.size - 1, out.shape[1]
    total = np.zeros(n)
    nodes, values = np.empty(n, np.int64), np.empty(n)
    grown = np.empty(n, np.int64)
    for start in range(lo, hi):
        nodes[0], values[0], count = start, 1.0, 1
        for j in range(k):
            count_grown = 0
            for i in range(count):
                u = nodes[i]
                degree = indptr[u + 1] - indptr[u]
                if degree == 0:
                    if total[u] == 0.0:
                        grown[count_grown] = u
                        count_grown += 1
                    total[u] += values[i]
                for slot in range(indptr[u], indptr[u + 1]):
                    v = indices[slot]
                    if total[v] == 0.0:
                        grown[count_grown] = v
                        count_grown += 1
                    total[v] += values[i] / degree
            out[start - lo, j] = total[start]
            for i in range(count_grown):
                values[i] = total[grown[i]]
                total[grown[i]] = 0.0
            nodes, grown, count = grown, nodes, count_grown


@njit(cache=True, nogil=True)
def expansion_work(indptr, indices, rows, levels, most):  # type: ignore[no-untyped-def]
    """Slots that `levels` expansions from each of `rows` read in total; counting ends beyond `most`."""
    n = indptr.size - 1
    seen = np.zeros(n, np.int64)
    nodes, grown = np.empty(n, np.int64), np.empty(n, np.int64)
    work, stamp = 0, 0
    for start in rows:
        nodes[0], count = start, 1
        for _ in range(levels):
            stamp += 1
            count_grown = 0
            for i in range(count):
                u = nodes[i]
                work += indptr[u + 1] - indptr[u]
                if work > most:
                    return work
                for slot in range(indptr[u], indptr[u + 1]):
                    v = indices[slot]
                    if seen[v] != stamp:
                        seen[v] = stamp
                        grown[count_grown] = v
                        count_grown += 1
            nodes, grown, count = grown, nodes, count_grown
    return work
