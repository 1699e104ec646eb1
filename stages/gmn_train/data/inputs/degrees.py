"""Degrees as inputs: a node's own, and what the degrees of its neighbours are like."""

import numpy as np

from gmn_pipeline.graph import Graph
from gmn_pipeline.types import FloatArray, IntArray
from gmn_train.settings.model_settings import ModelConfig


def degree_inputs(graph: Graph, config: ModelConfig) -> FloatArray | None:
    """(n, config.degree_columns) float32: log(1 + degree), then the profile; None where the model reads neither."""
    parts = [np.log1p(graph.degrees).astype(np.float32)[:, None]] if config.log_degree else []
    parts += [degree_profile(graph.indptr, graph.indices, graph.degrees)] if config.degree_profile else []
    return np.concatenate(parts, 1) if parts else None


def degree_profile(indptr: IntArray, indices: IntArray, degrees: IntArray) -> FloatArray:
    """(n, 4) float32: least, greatest, mean and standard deviation of the neighbours' log(1 + degree); 0 without any.

    Cai and Wang (2018) call it the local degree profile, of plain degrees; logarithms keep hubs in range.
    """
    out = np.zeros((len(degrees), 4), np.float32)
    some = np.flatnonzero(degrees)
    if len(some) == 0:
        return out
    near = np.log1p(degrees).astype(np.float64)[indices]  # one per edge slot
    first, count = indptr[some], degrees[some]
    mean = np.add.reduceat(near, first) / count
    spread = np.add.reduceat((near - np.repeat(mean, count)) ** 2, first) / count
    rows = np.minimum.reduceat(near, first), np.maximum.reduceat(near, first), mean, np.sqrt(spread)
    out[some] = np.stack(rows, 1)
    return out
