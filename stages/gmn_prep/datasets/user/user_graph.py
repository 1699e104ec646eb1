"""From named arrays to a Graph: the common end of all readers of the user's own files.

The names are those of the .npz format; docs/datasets.md lists them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, GraphError, nearest, one_line
from gmn_pipeline.graph import Graph, Texts
from gmn_pipeline.metrics import METRICS
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.user.labels import Labels, read_labels
from gmn_prep.datasets.user.user_splits import MASKS, complete_splits, read_splits
from gmn_prep.datasets.user.user_task import AskedTask, choose_item, read_asked_task
from gmn_prep.datasets.wanted_task import link_metric

EDGES = ("edge_index", "edges", "indptr", "indices")
FIELDS = ("x", "y", "edge_attr", "graph_ptr", "pairs", "splits", *MASKS, "time")
TEXTS = ("x_names", "edge_names", "class_names", "node_ids", "graph_ids")
SCALARS = ("num_nodes", "directed", "level", "kind", "metric", "classes", "class_weighted")
KEYS = (*EDGES, *FIELDS, *TEXTS, *SCALARS)
UNBALANCED = 0.9
"""Share of one class beyond which a note is given."""
MOST_CATEGORIES = 1000
"""Of an integer feature, or as many as there are rows: larger numbers are quantities."""


def graph_from_arrays(
    arrays: dict[str, Any], options: DatasetOptions, path: Path, build: Callable[..., Graph] = Graph.from_edges
) -> tuple[Graph, tuple[str, ...]]:
    """The graph and what the user should know about its making. Raises DatasetError that names the file.

    build: makes it of edges, the number of nodes and fields.
    """
    try:
        return _build(arrays, options, build)
    # Values of odd types and shapes are the file's mistake, not ours.
    except (GraphError, DatasetError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise DatasetError(f"{path.name}: {one_line(error)}") from error


def _build(
    arrays: dict[str, Any], options: DatasetOptions, build: Callable[..., Graph]
) -> tuple[Graph, tuple[str, ...]]:
    notes: list[str] = []
    arrays = {key: _value(key, value) for key, value in arrays.items()}
    for key in ("x", "edge_attr"):
        if key in arrays:
            arrays[key] = _quantities(key, arrays[key], notes)
    edges, nodes = _edge_rows(arrays)
    if nodes is None:
        nodes = int(edges.max(initial=-1)) + 1
    fields: dict[str, Any] = {key: arrays.get(key) for key in ("x", "edge_attr", "graph_ptr", "x_names", "edge_names")}
    fields["directed"] = options.directed or bool(arrays.get("directed", False))
    asked = read_asked_task(options, arrays)
    if asked.item == "link" and "pairs" not in arrays:
        return _draw_links(build(edges, nodes, **fields), arrays, options, asked)
    task, y = _choose_task(arrays, nodes, asked, notes)
    splits, pairs = read_splits(arrays), arrays.get("pairs")
    graph = build(edges, nodes, y=y, pairs=pairs, splits=splits, task=task, **fields)
    graph = _add_ids(graph, arrays)
    report = graph.report
    if report is not None and (report.self_loops_dropped or report.duplicates_dropped):
        notes.append(str(report))
    if task is not None:
        graph, drawn = complete_splits(graph, arrays.get("time"), options.seed)
        notes += drawn
    return graph, tuple(notes)


def _value(key: str, value: Any) -> Any:
    """An array, a scalar, or texts, checked for what the key may hold."""
    if key not in KEYS:
        raise DatasetError(f"key '{key}' is not known; allowed: {', '.join(KEYS)}{nearest(key, KEYS)}")
    if key in SCALARS:
        return value
    if key in TEXTS:
        return value if isinstance(value, Texts) else tuple(str(item) for item in np.asarray(value).tolist())
    value = np.asarray(value)
    allowed = "biufU" if key == "y" else "biuf"
    if value.dtype.kind not in allowed:
        raise DatasetError(f"{key} is of type {value.dtype}; it must hold numbers")
    return value


def _quantities(key: str, value: Array, notes: list[str]) -> Array:
    """Whole numbers too large or negative to be categories, as numbers."""
    if value.dtype.kind not in "iu" or value.size == 0:
        return value
    low, high = int(value.min()), int(value.max())
    if low >= 0 and high < max(MOST_CATEGORIES, len(value)):
        return value
    notes.append(f"{key} holds whole numbers from {low:,} to {high:,}: read as numbers, not as categories")
    return value.astype(np.float32)


def _choose_task(
    arrays: dict[str, Any], nodes: int, asked: AskedTask, notes: list[str]
) -> tuple[Task | None, Array | None]:
    """The task and the labels as `Graph` has them; none where there are no labels."""
    if "y" in arrays:
        labels = read_labels(arrays["y"], asked.kind, asked.classes, pairs="pairs" in arrays)
        if labels is not None and asked.kind is None and _means_binary(labels, asked.metric):
            labels = read_labels(arrays["y"], "binary", asked.classes, pairs="pairs" in arrays)
        if labels is None:
            notes.append("all labels are empty: read as data without labels")
            return None, None
        notes += labels.notes
        graphs = None if arrays.get("graph_ptr") is None else len(arrays["graph_ptr"]) - 1
        item = choose_item(len(labels.y), nodes, graphs, pairs="pairs" in arrays, asked=asked)
        names = labels.names or arrays.get("class_names")
        if labels.kind == "multiclass" and asked.metric is None:
            notes += _say_unbalanced(labels, names)
        options: dict[str, Any] = {"class_weighted": asked.class_weighted, "class_names": names}
        return Task.of(item, labels.kind, labels.classes, asked.metric, **options), labels.y  # type: ignore[arg-type]
    if asked:
        raise DatasetError("a task is given but there are no labels; add them (y), or leave the task out")
    return None, None


def _means_binary(labels: Labels, metric: str | None) -> bool:
    """Whether a metric that judges one class against the other is asked for, and there are two."""
    kinds = METRICS[metric].kinds if metric is not None and metric in METRICS else ()
    return labels.kind == "multiclass" and labels.classes == 2 and "binary" in kinds and "multiclass" not in kinds


def _say_unbalanced(labels: Labels, names: Any) -> list[str]:
    """A note where nearly all items are of one class: accuracy is then high for a model that learned nothing."""
    counts = np.bincount(labels.y[labels.y >= 0], minlength=1)
    share = counts.max() / max(counts.sum(), 1)
    if share <= UNBALANCED:
        return []
    name = names[counts.argmax()] if names else counts.argmax()
    other = "--task binary --metric average_precision" if labels.classes == 2 else "--metric macro_f1"
    return [f"{share:.1%} of labels are of class {name}, so accuracy says little; {other} looks at the rare ones"]


def _add_ids(graph: Graph, arrays: dict[str, Any]) -> Graph:
    """The graph with the user's ids, unless they are the numbers that nodes have anyway."""
    for key, count, role in (("node_ids", graph.num_nodes, "nodes"), ("graph_ids", graph.num_graphs, "graphs")):
        ids = arrays.get(key)
        if ids is None:
            continue
        if len(ids) != count:
            raise DatasetError(f"{len(ids):,} {key} for {count:,} {role}; give one each")
        if any(text != str(number) for number, text in enumerate(ids)):
            graph = graph.with_ids(**{role: ids})
    return graph


def _draw_links(
    graph: Graph, arrays: dict[str, Any], options: DatasetOptions, asked: AskedTask
) -> tuple[Graph, tuple[str, ...]]:
    """A link task asked of a file without pairs: its own edges are held out."""
    from gmn_prep.datasets.links import hold_out_links

    if asked.kind not in (None, "binary"):
        raise DatasetError(f"a link task on held-out edges is binary, not {asked.kind}; or give pairs and their labels")
    return hold_out_links(_add_ids(graph, arrays), options.seed, link_metric(options))


def _edge_rows(arrays: dict[str, Any]) -> tuple[Array, int | None]:
    """(E, 2) edges, and the number of nodes if anything tells it."""
    num_nodes = arrays.get("num_nodes")
    nodes = int(num_nodes) if num_nodes is not None else len(arrays["x"]) if "x" in arrays else None
    forms = [form for form in ("edge_index", "edges", "indptr") if form in arrays]
    if len(forms) != 1 or ("indptr" in arrays) != ("indices" in arrays):
        present = ", ".join(key for key in EDGES if key in arrays)
        what = f"found {present}" if present else "there are no edges"
        raise DatasetError(f"{what}; give edges as edge_index, as edges, or as indptr and indices")
    if "indptr" in arrays:
        rows = Graph(arrays["indptr"], arrays["indices"], directed=True)  # checks the pointers before they are used
        return np.stack([rows.slot_sources, rows.indices], axis=1), nodes or rows.num_nodes
    edges = np.asarray(arrays[forms[0]])
    wanted = (2, "E") if forms[0] == "edge_index" else ("E", 2)
    if edges.ndim != 2 or edges.shape[wanted.index(2)] != 2:
        raise DatasetError(f"{forms[0]} has shape {edges.shape}; it must be ({wanted[0]}, {wanted[1]})")
    return edges.T if forms[0] == "edge_index" else edges, nodes
