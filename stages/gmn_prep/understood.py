"""Describes in a few lines what was understood of a dataset, before any work is done."""

from collections.abc import Sequence

import numpy as np

from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.types import Array

PARTS = {"train": TRAIN, "validation": VAL, "test": TEST}


def describe_graph(graph: Graph) -> list[str]:
    """Lines on graph, task, classes, features and splits."""
    lines = [f"graph     {_graph(graph)}", f"task      {_task(graph)}"]
    lines += [
        f"features  {what}: {_features(value, names)}"
        for what, value, names in (("node", graph.x, graph.x_names), ("edge", graph.edge_attr, graph.edge_names))
        if value is not None
    ]
    if graph.splits is not None:
        lines.append(f"splits    {_splits(graph.splits)}")
    return lines


def _graph(graph: Graph) -> str:
    many = f"{graph.num_graphs:,} graphs, " if graph.graph_ptr is not None else ""
    ids = "" if graph.node_ids is None else f", called '{graph.node_ids[0]}' and so on"
    return f"{many}{graph.num_nodes:,} nodes, {graph.num_edges:,} {'directed ' * graph.directed}edges{ids}"


def _task(graph: Graph) -> str:
    task, y = graph.task, graph.y
    if task is None or y is None:
        return "none: there are no labels"
    words = {"multilabel": "labels", "regression": "targets"}.get(task.kind, "classes")
    known = ~np.isnan(y).all(axis=1) if y.dtype.kind == "f" else y >= 0
    names = "" if task.class_names is None else f" ({_few(task.class_names)})"
    share = f"{np.count_nonzero(known):,} of {known.size:,} {task.item}s labelled"
    return f"{task.item} {task.kind}, {task.classes} {words}{names}, {task.metric}; {share}"


def _features(value: Array, names: Sequence[str] | None) -> str:
    kind = "categories" if value.dtype.kind == "i" else "numbers"
    return f"{value.shape[1]} {kind}" + (f" ({_few(names)})" if names else "")


def _splits(splits: Array) -> str:
    counts = ", ".join(f"{np.count_nonzero(splits[0] == code):,} {name}" for name, code in PARTS.items())
    return counts if len(splits) == 1 else f"{len(splits)}; the first has {counts}"


def _few(names: Sequence[str], most: int = 6) -> str:
    shown = [name if len(name) <= 30 else f"{name[:27]}..." for name in names[:most]]
    return ", ".join(shown) + (f", ... {len(names) - most} more" if len(names) > most else "")
