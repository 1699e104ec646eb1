"""The lowest eigenvectors of small normalised Laplacians, each solved densely by LAPACK."""

from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_double, c_int, c_void_p
from dataclasses import dataclass

import numpy as np
from numba import njit
from numba.extending import get_cython_function_address

from gmn_pipeline.types import FloatArray, IntArray

_DOUBLES, _INTS = POINTER(c_double), POINTER(c_int)
# scipy's own Python wrapper keeps the interpreter locked, so two threads gain nothing; a call through ctypes does not.
# Beside np.linalg.eigh, which finds all vectors: 0.9 ms instead of 1.7 at 150 nodes, 2.8 instead of 6.7 at 300.
_dsyevr = CFUNCTYPE(
    None, c_char_p, c_char_p, c_char_p, _INTS, c_void_p, _INTS, _DOUBLES, _DOUBLES, _INTS, _INTS, _DOUBLES, _INTS,
    c_void_p, c_void_p, _INTS, c_void_p, c_void_p, _INTS, c_void_p, _INTS, _INTS,
)(get_cython_function_address("scipy.linalg.cython_lapack", "dsyevr"))  # fmt: skip


@dataclass(frozen=True)
class Workspace:
    """What LAPACK needs for matrices of up to `size` rows; one per thread."""

    matrix: FloatArray
    work: FloatArray
    integers: IntArray
    support: IntArray

    @classmethod
    def of(cls, size: int) -> "Workspace":
        return cls(
            np.empty(size * size),
            np.empty(70 * size + 1),
            np.empty(10 * size + 1, dtype=np.int32),
            np.empty(2 * size + 2, dtype=np.int32),
        )


def lowest_eigenvectors_dense(
    indptr: IntArray, indices: IntArray, lo: int, hi: int, k: int, space: Workspace
) -> FloatArray:
    """(k, hi - lo) float64 eigenvectors of the graph of nodes lo .. hi after the trivial one, by rising eigenvalue."""
    n = hi - lo
    matrix = space.matrix[: n * n].reshape(n, n)
    fill_laplacian(indptr, indices, lo, matrix)
    return _lowest(matrix, k, space)


def _lowest(matrix: FloatArray, k: int, space: Workspace) -> FloatArray:
    """(k, n) eigenvectors of a symmetric matrix with the smallest eigenvalues; destroys the matrix."""
    n = matrix.shape[0]
    values, vectors = np.empty(n), np.empty((k, n))
    size, zero, num_values, info = c_int(n), c_double(0.0), c_int(0), c_int(0)
    _dsyevr(
        b"V", b"I", b"U", byref(size), matrix.ctypes.data, byref(size), byref(zero), byref(zero),
        byref(c_int(1)), byref(c_int(k)), byref(zero), byref(num_values), values.ctypes.data, vectors.ctypes.data,
        byref(size), space.support.ctypes.data, space.work.ctypes.data, byref(c_int(space.work.size)),
        space.integers.ctypes.data, byref(c_int(space.integers.size)), byref(info),
    )  # fmt: skip
    assert info.value == 0, info.value
    assert num_values.value == k, (num_values.value, k)
    return vectors


@njit(cache=True, nogil=True)
def fill_laplacian(indptr, indices, lo, out):  # type: ignore[no-untyped-def]
    """out = I - D^-1/2 A D^-1/2 + 3 t t' for the graph of nodes lo .. lo+n.

    t is the trivial unit eigenvector, sqrt(degree) (without any edge: all equal): moved from eigenvalue 0 to the far
    end, it drops out by itself, even among other null vectors.
    """
    n = out.shape[0]
    trivial, inverse_root = np.empty(n), np.empty(n)
    volume = indptr[lo + n] - indptr[lo]
    for i in range(n):
        degree = indptr[lo + i + 1] - indptr[lo + i]
        trivial[i] = np.sqrt(degree / volume) if volume > 0 else np.sqrt(1.0 / n)
        inverse_root[i] = 1.0 / np.sqrt(degree) if degree > 0 else 0.0
    for i in range(n):
        for j in range(n):
            out[i, j] = 3.0 * trivial[i] * trivial[j]
        out[i, i] += 1.0
        for slot in range(indptr[lo + i], indptr[lo + i + 1]):
            j = indices[slot] - lo
            out[i, j] -= inverse_root[i] * inverse_root[j]
