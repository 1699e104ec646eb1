"""The mean over all pairs of independent replicas, and its variance."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def pair_mean(h):  # type: ignore[no-untyped-def]
    """Mean of h[r, s] over all r != s, h: (R, R) joining replicas r and s, and the variance of that mean.

    (h[r, s] + h[s, r]) / 2 = mean + g_r + g_s + q_rs with independent terms, so the mean has variance
    4 var(g) / R + 2 var(q) / (R (R-1)); both are estimated without bias, from the table's row means and what these
    leave over. (The jackknife would count var(q) twice.) The whole is widened by (R-1) / (R-3), the variance of
    Student's t, so that (estimate - truth) / error has spread 1 although R is small.
    """
    R = h.shape[0]
    mean, row = 0.0, np.zeros(R)
    for r in range(R):
        for s in range(R):
            if r != s:
                row[r] += 0.5 * (h[r, s] + h[s, r]) / (R - 1)
        mean += row[r] / R
    rows, pairs = 0.0, 0.0
    for r in range(R):
        rows += (row[r] - mean) ** 2
        for s in range(r):
            pairs += (0.5 * (h[r, s] + h[s, r]) - mean) ** 2
    q = max(0.0, pairs - rows * (R - 1) ** 2 / (R - 2)) / (R * (R - 3) / 2)
    g = max(0.0, rows * (R - 1) / (R - 2) ** 2 - q / (R - 2))
    return mean, (4 * g / R + 2 * q / (R * (R - 1))) * (R - 1) / (R - 3)
