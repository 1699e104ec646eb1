"""No importance at all: every node is tied, so the order is random and drawn anew each epoch."""

import numpy as np

from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array


def random_keys(graph: Graph, _threads: int = 1) -> Array:
    """(n,) zeros."""
    return np.zeros(graph.num_nodes, dtype=np.int64)
