"""What the generators of long-range tasks share: graphs of one size, from a matrix of who is joined to whom.

Each of them asks a node for something that lies farther away than a shallow network passes messages. So `mpnn` with
fewer layers than the distance can only guess, and whatever beats it has another way to see far.
"""

import numpy as np

from gmn_pipeline.graph import Graph, id_dtype
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array
from gmn_prep.datasets.splits import draw_splits


def equal_graphs(
    joined: Array, x: Array, y: Array, asked: Array, *, seed: int, classes: int, x_categories: tuple[int, ...]
) -> Graph:
    """Graphs of n nodes each, as one.

    Args:
        joined: (graphs, n, n), whether two nodes are.
        x: (graphs, n, columns) categories.
        y: (graphs, n) answers.
        asked: (graphs, n), whether a node is to answer; graphs, not nodes, are split 60/20/20.
    """
    graphs, n = joined.shape[:2]
    graph, _, neighbour = np.nonzero(joined)
    parts = draw_splits(graphs, (0.6, 0.2), seed)[0]
    return Graph(
        np.concatenate([[0], np.cumsum(joined.sum(2, dtype=np.int64).ravel())]),
        (graph * n + neighbour).astype(id_dtype(graphs * n)),
        x=x.reshape(graphs * n, -1).astype(np.int32),
        y=y.ravel().astype(np.int64),
        splits=np.where(asked, parts[:, None], 0).ravel().astype(np.uint8),
        graph_ptr=np.arange(graphs + 1, dtype=np.int64) * n,
        task=Task.of("node", "multiclass", classes, "accuracy"),
        x_categories=x_categories,
    )
