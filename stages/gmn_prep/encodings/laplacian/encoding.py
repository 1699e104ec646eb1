"""Laplacian positional encodings: the lowest eigenvectors of the normalised Laplacian, per graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from gmn_pipeline.errors import ConfigError
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import FloatArray, IntArray
from gmn_prep.encodings import ComputedEncoding, OnProgress
from gmn_prep.encodings.laplacian.chebyshev_krylov import block_width, lowest_eigenvectors
from gmn_prep.encodings.laplacian.dense_spectra import Workspace, lowest_eigenvectors_dense
from gmn_prep.encodings.laplacian.null_space import null_space
from gmn_prep.encodings.locality import bandwidth_order, renumbered
from gmn_prep.encodings.random_walk.row_chunks import Workers, row_chunks, workers

DENSE_NODES = 512
"""Graphs up to this size are solved densely (8 ms at 512 nodes)."""


@dataclass(frozen=True)
class LaplacianEncoding:
    """The result of `laplacian_encoding`."""

    vectors: FloatArray
    """(n, k) float32, unit norm within each graph, its largest entry positive; zero columns where a graph is short."""
    values: FloatArray
    """(graphs, k) float32 eigenvalues, rising; NaN where a graph is short."""
    residuals: FloatArray
    """(graphs, k) float32 ||L v - value v|| of the stored vectors; NaN where a graph is short."""
    short_graphs: int
    """Graphs with fewer than k+1 nodes: they have n-1 vectors."""


def laplacian_encoding(
    graph: Graph,
    k: int,
    *,
    seed: int = 0,
    threads: int = 1,
    tolerance: float = 1e-4,
    on_progress: OnProgress | None = None,
) -> LaplacianEncoding:
    """The k eigenvectors of L = I - D^-1/2 A D^-1/2 with the smallest eigenvalues after the trivial one, sqrt(degree).

    An isolated node has L_vv = 1 (0^-1/2 counts as 0, as in PyG), so no vector is spent on it. A disconnected graph
    has one eigenvalue 0 per component with an edge, and its vectors come first. A directed graph is taken as
    undirected. Graphs of up to 512 nodes are solved to machine precision; larger ones until the residual is below
    `tolerance` and a hundredth of the eigenvalue, as far as `chebyshev_krylov` allows. The bytes do not depend on
    `threads`. `on_progress` counts nodes. Raises ConfigError if no graph has k+1 nodes.
    """
    graph = _undirected(graph)
    pointer = graph.graph_ptr if graph.graph_ptr is not None else np.array([0, graph.num_nodes])
    sizes = np.diff(pointer)
    check_eigenvectors(graph, k)
    vectors = np.zeros((graph.num_nodes, k), dtype=np.float32)
    counts = np.clip(sizes - 1, 0, k)
    dense = sizes <= max(DENSE_NODES, 8 * block_width(k))
    with workers(threads) as team:
        _solve_small(graph, pointer, counts, np.flatnonzero(dense & (counts > 0)), vectors, team, on_progress)
        done = int(sizes[dense].sum())
        for g in np.flatnonzero(~dense):
            _solve_large(graph, pointer[g], pointer[g + 1], vectors, seed, tolerance, team, on_progress, done)
            done += int(sizes[g])
        values = np.empty((sizes.size, k), dtype=np.float32)
        residuals = np.empty_like(values)
        csr = (graph.indptr, graph.indices, pointer, counts)
        chunks = row_chunks(pointer, parts=64)
        team.run(lambda lo, hi: settle_graphs(*csr, vectors, values, residuals, lo, hi), chunks)
    if on_progress is not None:
        on_progress(graph.num_nodes, graph.num_nodes)
    return LaplacianEncoding(vectors, values, residuals, int(np.count_nonzero(sizes < k + 1)))


def compute_laplacian(
    graph: Graph, settings: dict[str, Any], *, threads: int, on_progress: OnProgress | None
) -> ComputedEncoding:
    """The entry of the table: `laplacian_encoding` with what the manifest keeps."""
    k, seed = settings["k"], settings["seed"]
    made = laplacian_encoding(graph, k, seed=seed, threads=threads, on_progress=on_progress)
    notice = (
        f"{made.short_graphs:,} graphs have fewer than {k + 1} nodes: they store the n-1 eigenvectors they have, then "
        "zeros (eigenvalues NaN)"
    )
    arrays = {"vectors": made.vectors, "values": made.values, "residuals": made.residuals}
    return ComputedEncoding(arrays, (notice,) if made.short_graphs else ())


def settle_laplacian(graph: Graph, settings: dict[str, Any], _seed: int) -> dict[str, Any]:
    """Refuse more eigenvectors than the largest graph has."""
    check_eigenvectors(graph, settings["k"])
    return settings


def _undirected(graph: Graph) -> Graph:
    if not graph.directed:
        return graph
    edges = np.stack([graph.slot_sources, graph.indices], axis=1)
    return Graph.from_edges(edges, graph.num_nodes, keep_self_loops=True, graph_ptr=graph.graph_ptr)


def check_eigenvectors(graph: Graph, k: int) -> None:
    """Raise ConfigError unless some graph has k eigenvectors besides the trivial one."""
    largest = graph.num_nodes if graph.graph_ptr is None else int(np.diff(graph.graph_ptr).max(initial=0))
    if k < 1:
        raise ConfigError(f"k is {k}; the number of eigenvectors must be at least 1")
    most = max(largest - 1, 0)
    if k > most:
        raise ConfigError(
            f"the Laplacian encoding was asked for k = {k} vectors, but the largest graph has {largest:,} nodes and so "
            f"{most:,} eigenvectors after the trivial one; the largest possible k is {most:,}"
        )


def _solve_small(
    graph: Graph,
    pointer: IntArray,
    counts: IntArray,
    chosen: IntArray,
    vectors: FloatArray,
    team: Workers,
    on_progress: OnProgress | None,
) -> None:
    """Fill the vectors of the chosen graphs, a few hundred graphs per chunk."""
    if chosen.size == 0:
        return
    sizes = np.diff(pointer)[chosen]

    def one(first: int, last: int) -> None:
        space = Workspace.of(int(sizes[first:last].max()))
        for g in chosen[first:last]:
            lo, hi = pointer[g], pointer[g + 1]
            rows = lowest_eigenvectors_dense(graph.indptr, graph.indices, lo, hi, counts[g], space)
            vectors[lo:hi, : counts[g]] = rows.T

    cost = np.concatenate([[0], np.cumsum(sizes**3)])
    chunks = row_chunks(cost, parts=256)

    def report(done: int, _: int) -> None:
        if on_progress is not None:
            on_progress(int(sizes.sum() * done / chosen.size), graph.num_nodes)

    team.run_reporting(one, chunks, report, chosen.size)


def _solve_large(
    graph: Graph,
    lo: int,
    hi: int,
    vectors: FloatArray,
    seed: int,
    tolerance: float,
    team: Workers,
    on_progress: OnProgress | None,
    done: int,
) -> None:
    """Fill the vectors of the graph of nodes lo .. hi: first the null vectors, then what the solver finds."""
    indptr = graph.indptr[lo : hi + 1] - graph.indptr[lo]
    indices = graph.indices[graph.indptr[lo] : graph.indptr[hi]] - graph.indices.dtype.type(lo)
    null = null_space(indptr, indices)
    k = vectors.shape[1]
    known = min(k, max(null.volume.size - 1, 0))
    vectors[lo:hi, :known] = null.contrasts(known)

    def on_share(share: float) -> None:
        if on_progress is not None:
            on_progress(done + int(share * (hi - lo)), graph.num_nodes)

    if known < k:
        order = bandwidth_order(indptr, indices)
        lowest = lowest_eigenvectors(
            *renumbered(indptr, indices, order),
            null.renumbered(order),
            k - known,
            seed=seed,
            tolerance=tolerance,
            workers=team,
            on_share=on_share,
        )
        vectors[lo + order, known:] = lowest


@njit(cache=True, nogil=True)
def settle_graphs(indptr, indices, pointer, counts, vectors, values, residuals, first, last):  # type: ignore[no-untyped-def]
    """Unit norm and sign of every vector of graphs first .. last, then its eigenvalue and residual in float64.

    Both are those of the vectors as stored: the value is the Rayleigh quotient v'Lv.
    """
    k = vectors.shape[1]
    for g in range(first, last):
        lo, hi = pointer[g], pointer[g + 1]
        values[g, :] = np.nan
        residuals[g, :] = np.nan
        product = np.zeros(hi - lo)
        for c in range(min(k, counts[g])):
            norm, top = 0.0, 0.0
            for v in range(lo, hi):
                norm += np.float64(vectors[v, c]) ** 2
                # Entries of equal size but for rounding: the first one decides.
                if abs(vectors[v, c]) > abs(top) * 1.0001:
                    top = vectors[v, c]
            scale = np.sign(top) / np.sqrt(norm)
            quotient = 0.0
            for v in range(lo, hi):
                vectors[v, c] *= scale
            for v in range(lo, hi):
                total = 0.0
                for slot in range(indptr[v], indptr[v + 1]):
                    u = indices[slot]
                    total += vectors[u, c] / np.sqrt(indptr[u + 1] - indptr[u])
                degree = indptr[v + 1] - indptr[v]
                product[v - lo] = vectors[v, c] - (total / np.sqrt(degree) if degree > 0 else 0.0)
                quotient += vectors[v, c] * product[v - lo]
            square = 0.0
            for v in range(lo, hi):
                square += (product[v - lo] - quotient * vectors[v, c]) ** 2
            values[g, c] = quotient
            residuals[g, c] = np.sqrt(square)
