"""Products of tall blocks, (n, p) with p of tens, summed over row chunks in a fixed order."""

import numpy as np

from gmn_pipeline.types import Array, FloatArray
from gmn_prep.encodings.random_walk.row_chunks import Chunk, Workers

ROWS = 8192
"""Rows per chunk: 16 to 64 float32 columns then stay in the second-level cache."""


class TallProducts:
    """Gram matrices, combinations and orthonormal bases of blocks with n rows."""

    def __init__(self, n: int, workers: Workers) -> None:
        self._chunks: list[Chunk] = [(lo, min(lo + ROWS, n)) for lo in range(0, n, ROWS)]
        self._workers = workers

    def inner(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """a' b, (p, q) float64."""
        parts = self._workers.run(lambda lo, hi: (a[lo:hi].T @ b[lo:hi]).astype(np.float64), self._chunks)
        return np.sum(parts, axis=0)

    def combine(self, a: FloatArray, coefficients: FloatArray, out: FloatArray) -> None:
        """out = a @ coefficients, in a's type; out may be columns of a."""
        coefficients = coefficients.astype(a.dtype)

        def one(lo: int, hi: int) -> None:
            out[lo:hi] = a[lo:hi] @ coefficients

        self._workers.run(one, self._chunks)

    def subtract(self, a: FloatArray, coefficients: FloatArray, x: FloatArray) -> None:
        """x -= a @ coefficients."""
        coefficients = coefficients.astype(a.dtype)

        def one(lo: int, hi: int) -> None:
            x[lo:hi] -= a[lo:hi] @ coefficients

        self._workers.run(one, self._chunks)

    def scale_rows(self, x: FloatArray, factor: Array, out: FloatArray) -> None:
        """out = factor[:, None] * x."""

        def one(lo: int, hi: int) -> None:
            np.multiply(x[lo:hi], factor[lo:hi, None], out=out[lo:hi])

        self._workers.run(one, self._chunks)

    def normalise(self, x: FloatArray, least: float = 0.0) -> None:
        """Make the columns of x unit vectors in place; one whose norm is `least` or less is noise and becomes zero."""
        norms = np.sqrt(self._squares(x))
        factor = np.where(norms > least, 1 / np.where(norms > least, norms, 1.0), 0.0).astype(x.dtype)

        def one(lo: int, hi: int) -> None:
            x[lo:hi] *= factor

        self._workers.run(one, self._chunks)

    def _squares(self, x: FloatArray) -> FloatArray:
        """(p,) float64 squared norms of the columns."""
        parts = self._workers.run(lambda lo, hi: np.einsum("ij,ij->j", x[lo:hi], x[lo:hi]), self._chunks)
        return np.sum(parts, axis=0, dtype=np.float64)

    def orthonormalise(self, x: FloatArray) -> int:
        """Make the columns of x orthonormal in place; returns the rank found, r: columns r.. are then zero.

        By the eigenvectors of the Gram matrix of unit columns, which drops dependent directions instead of blowing
        them up; callers run it twice, the second time on a nearly orthonormal block.
        """
        gram = self.inner(x, x)
        norms = np.sqrt(np.diag(gram))
        safe = np.where(norms > 0, norms, 1.0)
        values, vectors = np.linalg.eigh(gram / safe / safe[:, None])
        keep = values > 50 * np.finfo(x.dtype).eps * x.shape[1]
        rank = int(keep.sum())
        mixing = np.zeros_like(gram)
        mixing[:, :rank] = (vectors[:, keep] / np.sqrt(values[keep]) / safe[:, None])[:, ::-1]
        self.combine(x, mixing, x)
        return rank
