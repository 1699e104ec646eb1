"""Index work that whole graphs and batches share: ranges, edges among some nodes, pairs; no store, no draws."""

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.errors import ModelError
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, IntArray
from gmn_train.data.inputs.record import Neighbourhood


def edges_among(graph: Graph, ids: IntArray) -> tuple[IntArray, Neighbourhood]:
    """CSR slots (E,) between the given nodes, and the edges they are, in rows of `ids`."""
    counts = graph.degrees[ids]
    slots = concatenate_ranges(graph.indptr[ids], counts)
    sorter = np.argsort(ids, kind="stable")
    neighbours = graph.indices[slots]
    places = np.searchsorted(ids, neighbours, sorter=sorter)
    target = sorter[np.minimum(places, len(ids) - 1)] if len(ids) else places
    inside = ids[target] == neighbours if len(ids) else np.zeros(0, bool)
    source_rows = np.repeat(np.arange(len(ids)), counts)[inside]
    return slots[inside], neighbourhood(source_rows, target[inside], len(ids), graph.directed)


def pair_rows(ids: IntArray, pairs: Array | None) -> Tensor | None:
    """Pairs of node ids as rows of `ids`; ModelError where one is not among them."""
    if pairs is None:
        return None
    wanted = np.asarray(pairs, np.int64)
    if wanted.ndim != 2 or wanted.shape[1] != 2:
        raise ModelError(f"pairs has shape {wanted.shape}, expected (K, 2) node ids")
    sorter = np.argsort(ids, kind="stable")
    places = np.minimum(np.searchsorted(ids, wanted, sorter=sorter), len(ids) - 1)
    rows = sorter[places]
    if wanted.size and not np.array_equal(ids[rows], wanted):
        raise ModelError("pairs name nodes that are not among the batch's; ask for both ends of every pair")
    return torch.from_numpy(rows.astype(np.int64))


def neighbourhood(source: IntArray, target: IntArray, rows: int, directed: bool) -> Neighbourhood:
    edge_index = torch.from_numpy(np.stack([source, target]).astype(np.int64))  # (2, E)
    return Neighbourhood(edge_index, rows, symmetric=not directed)


def feature_tensor(values: Array) -> Tensor:
    """Features as float32, or categories as int64; a copy, so that a mapped file is never written to."""
    return torch.from_numpy(values.astype(np.float32 if values.dtype.kind == "f" else np.int64))


def concatenate_ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """starts[i], starts[i] + 1, ... counts[i] of them, for every i: (sum of counts,) int64."""
    total = int(counts.sum())
    offsets = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    ranges: IntArray = np.arange(total, dtype=np.int64) + offsets
    return ranges
