"""The lowest eigenvectors of a large sparse normalised Laplacian.

Block Krylov spaces of a Chebyshev filter, restarted with the best Ritz vectors: the filter does most of the matrix
products without any orthogonalisation, the Krylov space makes the most of each filter, and a block wider than k finds
multiple eigenvalues. On ogbn-arxiv, whose 9th to 25th eigenvalues lie within 0.002 of each other, K=8 takes about 175
products of 16 columns. ARPACK took 584 of one column, at 13 ms each with its orthogonalisation; subspace iteration with
the filter alone was not run: by its convergence rate it would need some 250 of 24 columns.

Where the Laplacian has small factors, its inverse takes the filter's place, which halves the time on a grid of 10,000.
"""

from collections.abc import Callable
from math import acosh
from typing import Any

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, child_key, root_key, unit_float
from gmn_pipeline.types import FloatArray, IntArray
from gmn_prep.encodings.laplacian.factored_laplacian import factor_if_cheap
from gmn_prep.encodings.laplacian.null_space import NullSpace
from gmn_prep.encodings.laplacian.tall_blocks import TallProducts
from gmn_prep.encodings.random_walk.row_chunks import Workers, row_chunks
from gmn_prep.encodings.spmm import recurrence_rows

FILTERS = 3
"""Filtered blocks per cycle, so the Krylov space is 4 blocks wide: 64 columns at K=8, 256 MB per million nodes."""
FLOAT32_ROWS = 100_000
"""Graphs larger than this are solved in float32, which about halves time and memory; goals are then at least 2.4e-6."""
POLISH_PRODUCTS, MOST_PRODUCTS = 1500, 6000
"""Matrix products after which the solver is content with `tolerance`, and after which it gives up."""


def block_width(k: int) -> int:
    """Columns of a block for k eigenvectors: whole cache lines, and at least 6 to spare."""
    return 8 * -(-(k + 6) // 8)


def lowest_eigenvectors(
    indptr: IntArray,
    indices: IntArray,
    null: NullSpace,
    k: int,
    *,
    seed: int,
    tolerance: float,
    workers: Workers,
    on_share: Callable[[float], None],
) -> FloatArray:
    """(n, k) unit eigenvectors of I - D^-1/2 A D^-1/2 with the smallest eigenvalues beyond its null space, rising.

    Stops when residual j is below both `tolerance` and a hundredth of eigenvalue j (an absolute residual says little
    about an eigenvalue of its own size), or when enough products were spent. `on_share` hears the share of work done.
    """
    n, b = indptr.size - 1, block_width(k)
    dtype: np.dtype[np.floating[Any]] = np.dtype(np.float32 if n > FLOAT32_ROWS and tolerance >= 1e-5 else np.float64)
    floor = 20 * float(np.finfo(dtype).eps)
    products = _Products(indptr, indices, workers, dtype)
    inverse = factor_if_cheap(indptr, indices)
    tall = TallProducts(n, workers)

    space = np.empty((n, b * (FILTERS + 1)), dtype=dtype)
    image = np.empty_like(space)
    _fill_start(root_key(seed, Purpose.START_VECTOR), space[:, :b])
    filled = _join(tall, null, space, 0, b)
    cut, first_excess, share = 0.98, 0.0, 0.0
    while True:
        # Degree by growth: the filter multiplies what lies at the top of the spectrum by about e^2.5.
        degree = min(200, max(8, round(2.5 / acosh(1 + 2 * (1 - cut) / (1 + cut)))))
        for _ in range(FILTERS):
            width = min(b, filled)
            last, fresh = space[:, filled - width : filled], space[:, filled : filled + width]
            if inverse is not None:
                inverse.solve(last, out=fresh)
            else:
                products.filter(last, degree, cut, out=fresh)
            grown = _join(tall, null, space, filled, width)
            if grown == filled:
                break  # the space is invariant: nothing new is left to find
            filled = grown
        products.multiply(space[:, :filled], image[:, :filled])
        projected = tall.inner(space[:, :filled], image[:, :filled])
        values, mixing = np.linalg.eigh((projected + projected.T) / 2)
        values, mixing = values[::-1], np.ascontiguousarray(mixing[:, ::-1])
        tall.combine(space[:, :filled], mixing[:, :b], space[:, :b])
        tall.combine(image[:, :filled], mixing[:, :b], image[:, :b])
        tall.subtract(space[:, :b], np.diag(values[:b]), image[:, :b])
        residuals = np.sqrt(np.diag(tall.inner(image[:, :k], image[:, :k])))
        goals = np.maximum(np.minimum(tolerance, (1 - values[:k]) / 100), floor)
        if products.count > POLISH_PRODUCTS:
            goals[:] = max(tolerance, floor)
        if np.all(residuals <= goals) or products.count > MOST_PRODUCTS:
            return space[:, :k]
        excess = float(np.max(residuals / goals))
        first_excess = max(first_excess, excess)
        share = max(share, 0.99 * (1 - np.log(excess) / np.log(first_excess)))
        on_share(share)
        cut, filled = float(np.clip(values[min(b, filled - 1)], -0.5, 1 - 1e-9)), min(b, filled)


def _join(tall: TallProducts, null: NullSpace, space: FloatArray, filled: int, width: int) -> int:
    """Make columns filled .. filled+width orthonormal, also to all before and the null space; returns the new count."""
    fresh = space[:, filled : filled + width]
    tall.normalise(fresh)
    for turn in range(2):
        null.remove(fresh)
        if filled:
            tall.subtract(space[:, :filled], tall.inner(space[:, :filled], fresh), fresh)
        if turn == 0:
            tall.normalise(fresh, least=100 * float(np.finfo(space.dtype).eps))
        fresh = fresh[:, : tall.orthonormalise(fresh)]
    return filled + fresh.shape[1]


class _Products:
    """Products with S = D^-1/2 A D^-1/2, done as P = D^-1 A on rows scaled by degree^-1/2: no weight per slot."""

    def __init__(self, indptr: IntArray, indices: IntArray, workers: Workers, dtype: np.dtype) -> None:
        degree = np.maximum(np.diff(indptr), 1)
        self._inverse_degree = (1 / degree).astype(dtype)
        self._root_degree = np.sqrt(degree).astype(dtype)
        self._inverse_root = (1 / np.sqrt(degree)).astype(dtype)
        self._csr, self._dtype, self._workers = (indptr, indices), dtype, workers
        self._chunks = row_chunks(indptr, parts=64)
        self._tall = TallProducts(degree.size, workers)
        self.count = 0

    def _step(
        self, x: FloatArray, previous: FloatArray, alpha: float, beta: float, gamma: float, out: FloatArray
    ) -> None:
        factors = (self._dtype.type(alpha), self._dtype.type(beta), self._dtype.type(gamma))
        arguments = (*self._csr, self._inverse_degree, x, previous, *factors, out)
        self._workers.run(lambda lo, hi: recurrence_rows(*arguments, lo, hi), self._chunks)
        self.count += 1

    def filter(self, x: FloatArray, degree: int, cut: float, out: FloatArray) -> None:
        """out = T_degree(S mapped so that [-1, cut] is [-1, 1]) x: small below the cut, growing above it."""
        centre, radius = (cut - 1) / 2, (cut + 1) / 2
        older = np.empty(x.shape, dtype=self._dtype)
        self._tall.scale_rows(x, self._inverse_root, older)
        newer = np.empty_like(older)
        self._step(older, older, 1 / radius, -centre / radius, 0.0, newer)
        for _ in range(degree - 1):
            self._step(newer, older, 2 / radius, -2 * centre / radius, -1.0, older)
            older, newer = newer, older
        self._tall.scale_rows(newer, self._root_degree, out)

    def multiply(self, x: FloatArray, out: FloatArray) -> None:
        """out = S x."""
        scaled, product = np.empty(x.shape, dtype=self._dtype), np.empty(x.shape, dtype=self._dtype)
        self._tall.scale_rows(x, self._inverse_root, scaled)
        self._step(scaled, scaled, 1.0, 0.0, 0.0, product)
        self._tall.scale_rows(product, self._root_degree, out)


@njit(cache=True, nogil=True)
def _fill_start(key, out):  # type: ignore[no-untyped-def]
    for c in range(out.shape[1]):
        column_key = child_key(key, np.uint64(c))
        for v in range(out.shape[0]):
            out[v, c] = unit_float(child_key(column_key, np.uint64(v))) - 0.5
