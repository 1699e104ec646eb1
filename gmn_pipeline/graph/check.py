"""The checks of a graph that read every value. They run once, when a graph is built, not when a store is opened."""

from typing import TYPE_CHECKING

import numpy as np

from gmn_pipeline.errors import GraphError
from gmn_pipeline.names import check_names
from gmn_pipeline.types import Array

if TYPE_CHECKING:
    from gmn_pipeline.graph import Graph

MOST_CATEGORIES = 10_000_000
_ROWS_AT_A_TIME = 1 << 16


def check_graph(graph: "Graph") -> None:
    """Raise GraphError at the first thing wrong with `graph`."""
    _check_rows(graph)
    if not graph.directed:
        _check_symmetric(graph)
    if graph.graph_ptr is not None:
        _check_borders(graph)
    check_values(graph)


def check_values(graph: "Graph") -> None:
    """The part of `check_graph` that is not about edges: features, names, ids, labels and splits."""
    for name, categories, names in (
        ("x", graph.x_categories, graph.x_names),
        ("edge_attr", graph.edge_categories, graph.edge_names),
    ):
        value = getattr(graph, name)
        if value is not None:
            _check_features(name, value, categories)
            if names is not None:
                check_names(f"names of {name}", names, value.shape[1])
    for name, ids in (("node ids", graph.node_ids), ("graph ids", graph.graph_ids)):
        if ids is not None:
            ids.check(name)
    _check_labels(graph)
    if graph.splits is not None and graph.splits.max(initial=0) > 3:
        raise GraphError(f"splits holds {graph.splits.max()}; allowed: 0 unused, 1 train, 2 validation, 3 test")


def _check_rows(graph: "Graph") -> None:
    """Neighbours ascend within each row."""
    from gmn_pipeline.graph.check_kernels import first_unsorted

    node = first_unsorted(graph.indptr, graph.indices)
    if node >= 0:
        raise GraphError(f"neighbours of node {node} are not sorted; sort them or build with Graph.from_edges")


def _check_symmetric(graph: "Graph") -> None:
    from gmn_pipeline.graph.check_kernels import is_symmetric

    if not is_symmetric(graph.indptr, graph.indices):
        raise GraphError(
            "some edges lack their reverse; pass directed=True to keep them, or build with Graph.from_edges"
        )


def _check_borders(graph: "Graph") -> None:
    """No edge joins two graphs."""
    assert graph.graph_ptr is not None
    graph_of = np.repeat(np.arange(graph.num_graphs), np.diff(graph.graph_ptr))
    crossing = graph_of[graph.slot_sources] != graph_of[graph.indices]
    if crossing.any():
        slot = int(np.argmax(crossing))
        raise GraphError(
            f"an edge joins node {graph.slot_sources[slot]} and node {graph.indices[slot]} of different graphs; "
            "edges must stay within graph_ptr's borders"
        )


def _check_features(name: str, value: Array, categories: tuple[int, ...] | None) -> None:
    if categories is None:
        count, first = 0, (0, 0)
        for start in range(0, len(value), _ROWS_AT_A_TIME):
            bad = ~np.isfinite(value[start : start + _ROWS_AT_A_TIME])
            if bad.any() and not count:
                row, at = np.unravel_index(int(np.argmax(bad)), bad.shape)
                first = (start + int(row), int(at))
            count += int(bad.sum())
        if count:
            raise GraphError(
                f"{name} has {count:,} values that are NaN or infinite, the first at row {first[0]}, column "
                f"{first[1]}; replace or drop them"
            )
        return
    if len(categories) != value.shape[1]:
        raise GraphError(f"{len(categories)} category counts for the {value.shape[1]} columns of {name}")
    if max(categories, default=0) > MOST_CATEGORIES:
        raise GraphError(
            f"{name} has {max(categories):,} categories in one column, and a model holds a vector for each; give "
            "numbers as floats, or count categories from 0"
        )
    low, high = value.min(axis=0, initial=0), value.max(axis=0, initial=-1)
    for column, count in enumerate(categories):
        if low[column] < 0 or high[column] >= count:
            raise GraphError(
                f"column {column} of {name} holds categories {low[column]}..{high[column]}; allowed: 0..{count - 1}"
            )


def _check_labels(graph: "Graph") -> None:
    if graph.y is None or graph.task is None or graph.y.size == 0:
        return
    y, task = graph.y, graph.task
    if task.kind in ("multiclass", "binary"):
        if y.min() < -1 or y.max() >= task.classes:
            raise GraphError(
                f"labels hold {y.min()}..{y.max()}; with {task.classes} classes they are 0..{task.classes - 1}, or -1 "
                "where unknown"
            )
    elif task.kind == "multilabel":
        if not np.all((y == 0) | (y == 1) | np.isnan(y)):
            raise GraphError("multilabel labels must be 0 or 1, or NaN where unknown")
    elif np.isinf(y).any():
        raise GraphError("regression targets hold infinite values; use NaN where a target is unknown")
