"""One step of a three-term recurrence with the random-walk matrix P = D^-1 A on a block of columns."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def recurrence_rows(indptr, indices, inverse_degree, x, previous, alpha, beta, gamma, out, lo, hi):  # type: ignore[no-untyped-def]
    """out = alpha P x + beta x + gamma previous, for rows lo .. hi.

    x, previous, out: (n, p), all of one float type; out may be `previous`, never x. Columns are the inner loop: a
    neighbour's row of 16 float32 is one cache line (2.3M slots on one core: 16 columns 25 ms, one column 10 ms).
    """
    columns = x.shape[1]
    total = np.empty(columns, x.dtype)
    for v in range(lo, hi):
        for c in range(columns):
            total[c] = 0
        for slot in range(indptr[v], indptr[v + 1]):
            u = indices[slot]
            for c in range(columns):
                total[c] += x[u, c]
        scale = alpha * inverse_degree[v]
        for c in range(columns):
            out[v, c] = scale * total[c] + beta * x[v, c] + gamma * previous[v, c]
