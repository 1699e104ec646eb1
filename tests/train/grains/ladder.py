"""A small graph whose node scan does not follow ids, for steps cut into grains or shared by processes."""

import numpy as np

from gmn_pipeline import Graph, Task


def ladder(item: str = "node", edge_features: bool = False) -> Graph:
    """Two rails with rungs and a few chords; degrees differ, so the scan's order does not follow ids."""
    n, rng = 60, np.random.default_rng(0)
    edges = [[i, i + 2] for i in range(n - 2)] + [[i, i + 1] for i in range(0, n, 2)] + [[0, i] for i in (9, 30, 44)]
    x, pairs = rng.normal(size=(n, 3)).astype(np.float32), rng.integers(0, n, (31, 2))
    items = n if item == "node" else len(pairs)
    splits, y = np.tile([1, 1, 2, 3], n)[:items], rng.integers(0, 2, items)
    attr = rng.integers(0, 3, (len(edges), 1)) if edge_features else None
    return Graph.from_edges(
        np.array(edges), n, x=x, y=y, splits=splits, pairs=None if item == "node" else pairs, edge_attr=attr,
        edge_categories=(3,) if edge_features else None, task=Task.of(item, "binary", 2),
    )  # fmt: skip
