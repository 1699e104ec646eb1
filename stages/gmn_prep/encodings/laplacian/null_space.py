"""The null space of the normalised Laplacian, known without solving: one vector per connected component."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gmn_pipeline.types import FloatArray, IntArray


@dataclass(frozen=True)
class NullSpace:
    """Vector c is sqrt(degree / volume of c) on component c and 0 elsewhere. Isolated nodes are in none (L_vv = 1)."""

    component: IntArray
    """(n,) int64 component of each node with an edge, by falling volume; -1 for isolated nodes."""
    entry: FloatArray
    """(n,) float64: the node's entry in its component's vector."""
    volume: FloatArray
    """(components,) float64 sums of degrees, falling."""

    def renumbered(self, order: IntArray) -> "NullSpace":
        """The null space of the graph with node order[i] called i."""
        return NullSpace(self.component[order], self.entry[order], self.volume)

    def remove(self, x: FloatArray) -> None:
        """Project the columns of x, (n, p), off the null space, in place."""
        _remove(self.component, self.entry, np.zeros((self.volume.size, x.shape[1])), x)

    def contrasts(self, count: int) -> FloatArray:
        """(n, count) float64 orthonormal null vectors, orthogonal to the trivial one, sqrt(degree).

        Vector j is of one sign on the j+1 largest components and of the other on the next one (Helmert contrasts).
        """
        share = np.sqrt(self.volume / self.volume.sum())
        before = np.cumsum(share**2)
        out = np.zeros((self.component.size, count))
        for j in range(count):
            coefficients = np.zeros(self.volume.size + 1)  # the last one is for component -1
            coefficients[: j + 1] = share[: j + 1] * share[j + 1] / before[j]
            coefficients[j + 1] = -1.0
            coefficients /= np.linalg.norm(coefficients)
            out[:, j] = coefficients[self.component] * self.entry
        return out


def null_space(indptr: IntArray, indices: IntArray) -> NullSpace:
    """The null space of an undirected graph in CSR form."""
    n = indptr.size - 1
    degree = np.diff(indptr).astype(np.float64)
    ones = np.ones(indices.size, dtype=np.int8)
    _, labels = connected_components(csr_array((ones, indices, indptr), shape=(n, n)), directed=False)
    volume = np.bincount(labels, weights=degree)
    order = np.argsort(-volume, kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    rank[volume == 0] = -1
    component = rank[labels]
    volumes = np.asarray(volume[order][volume[order] > 0], dtype=np.float64)
    entry = np.zeros(n)
    inside = component >= 0
    entry[inside] = np.sqrt(degree[inside] / volumes[component[inside]])
    return NullSpace(component, entry, volumes)


@njit(cache=True, nogil=True)
def _remove(component, entry, sums, x):  # type: ignore[no-untyped-def]
    n, columns = x.shape
    for v in range(n):
        if component[v] >= 0:
            for c in range(columns):
                sums[component[v], c] += entry[v] * x[v, c]
    for v in range(n):
        if component[v] >= 0:
            for c in range(columns):
                x[v, c] -= entry[v] * sums[component[v], c]
