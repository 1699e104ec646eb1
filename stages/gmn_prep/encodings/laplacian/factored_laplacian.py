"""Solving with a sparse normalised Laplacian, for graphs whose factors stay small: grids, roads, molecules, trees."""

import numpy as np
from numba import njit
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from gmn_pipeline.types import FloatArray, IntArray

MOST_WORK, MOST_BAND = 2e10, 4.0
"""Factors are made if factoring within the band takes at most MOST_WORK multiplications and the band is at most
MOST_BAND sqrt(n) wide. Grids have 1.4 sqrt(n), points linked to near ones 2.3, scale-free graphs 13 or more: their
factors fill up. The factorisation itself goes by minimum degree and takes far less than the band: a grid of 10,000
cells 34 ms (0.2e9 within the band), one of 160,000 1 s; solving with 16 columns takes 9 and 260 ms."""
SHIFT = 1e-6
"""Added to the Laplacian, which is singular: 1e-6 costs six of sixteen digits, in null vectors, which are removed."""


class FactoredLaplacian:
    """(SHIFT I + L)^-1 by SuperLU, L = I - D^-1/2 A D^-1/2. One thread: the bytes are the same for any number."""

    def __init__(self, indptr: IntArray, indices: IntArray) -> None:
        n, degree = indptr.size - 1, np.diff(indptr)
        root = 1 / np.sqrt(np.maximum(degree, 1))
        weights = -np.repeat(root, degree) * root[indices]
        shifted = csc_array((weights, indices, indptr), shape=(n, n))  # symmetric: rows serve as columns
        shifted.setdiag(shifted.diagonal() + 1 + SHIFT)
        self._factors = splu(
            shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )

    def solve(self, x: FloatArray, out: FloatArray) -> None:
        """out = (SHIFT I + L)^-1 x, both (n, p)."""
        out[:] = self._factors.solve(x.astype(np.float64))


def factor_if_cheap(indptr: IntArray, indices: IntArray) -> FactoredLaplacian | None:
    """The factored Laplacian of a graph in bandwidth order, or None if the band is too wide."""
    n = indptr.size - 1
    cheap = band_work(indptr, indices) <= min(MOST_WORK, MOST_BAND**2 * n**2)
    return FactoredLaplacian(indptr, indices) if cheap else None


@njit(cache=True, nogil=True)
def band_work(indptr, indices):  # type: ignore[no-untyped-def]
    """Sum over rows of the squared distance to the first neighbour: the cost of a factorisation within the envelope."""
    work = 0.0
    for v in range(indptr.size - 1):
        first = v
        for slot in range(indptr[v], indptr[v + 1]):
            first = min(first, indices[slot])
        work += float(v - first) ** 2
    return work
