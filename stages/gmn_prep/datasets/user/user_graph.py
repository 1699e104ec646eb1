"""From named arrays to a Graph: the common end of all readers of the user's own files.

The names are those of the .npz format; docs/datasets.md lists them.
"""

from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, GraphError, nearest
from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.types import Array
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.splits import draw_splits
from gmn_prep.datasets.user.user_task import Wish, choose_task, read_wish
from gmn_prep.datasets.wanted_task import link_metric

MASKS = {"train_mask": TRAIN, "val_mask": VAL, "test_mask": TEST}
EDGES = ("edge_index", "edges", "indptr", "indices")
FIELDS = ("x", "y", "edge_attr", "graph_ptr", "pairs", "splits", *MASKS)
SCALARS = ("num_nodes", "directed", "level", "kind", "metric", "classes", "class_weighted")
KEYS = (*EDGES, *FIELDS, *SCALARS)
SHARES = (0.6, 0.2)


def graph_from_arrays(arrays: dict[str, Any], options: DatasetOptions, path: Path) -> tuple[Graph, tuple[str, ...]]:
    """The graph and what the user should know about its making. Raises DatasetError that names the file."""
    try:
        return _build(arrays, options)
    # Values of odd types and shapes are the file's mistake, not ours.
    except (GraphError, DatasetError, ValueError, TypeError, IndexError) as error:
        raise DatasetError(f"{path.name}: {' '.join(str(error).split())}") from error


def _build(arrays: dict[str, Any], options: DatasetOptions) -> tuple[Graph, tuple[str, ...]]:
    for key in arrays:
        if key not in KEYS:
            raise DatasetError(f"key '{key}' is not known; allowed: {', '.join(KEYS)}{nearest(key, KEYS)}")
        if key not in SCALARS:
            arrays = arrays | {key: np.asarray(arrays[key])}
            if arrays[key].dtype.kind not in "biuf":
                raise DatasetError(f"{key} is of type {arrays[key].dtype}; it must hold numbers")
    x, y, graph_ptr = arrays.get("x"), arrays.get("y"), arrays.get("graph_ptr")
    edges, nodes = _edge_rows(arrays)
    if nodes is None:
        nodes = int(edges.max(initial=-1)) + 1
        if nodes > 100 * edges.size + 1_000_000:
            raise DatasetError(
                f"node ids reach {nodes - 1:,} with only {len(edges):,} edges: names rather than numbers "
                "from 0; list the nodes in a node table, or number them and give x or num_nodes"
            )
    graphs = None if graph_ptr is None else len(graph_ptr) - 1
    wish = read_wish(options, arrays)
    if wish.level == "link" and "pairs" not in arrays:
        return _draw_links(edges, nodes, arrays, options, wish)
    task = None
    if y is not None:
        task = choose_task(y, nodes, graphs, pairs="pairs" in arrays, wish=wish)
    elif wish:
        raise DatasetError("a task is given but there are no labels; add them (y), or leave the task out")
    graph = Graph.from_edges(
        edges,
        nodes,
        edge_attr=arrays.get("edge_attr"),
        directed=options.directed or bool(arrays.get("directed", False)),
        x=x,
        y=y,
        graph_ptr=graph_ptr,
        pairs=arrays.get("pairs"),
        splits=_read_splits(arrays),
        task=task,
    )
    notices = []
    report = graph.report
    if report is not None and (report.self_loops_dropped or report.duplicates_dropped):
        notices.append(str(report))
    if task is not None and graph.splits is None:
        graph = graph.replace(splits=_draw_split(graph, options.seed))
        notices.append(f"no split given: drew a random 60/20/20 split with seed {options.seed}")
    return graph, tuple(notices)


def _draw_links(
    edges: Array, nodes: int, arrays: dict[str, Any], options: DatasetOptions, wish: Wish
) -> tuple[Graph, tuple[str, ...]]:
    """A link task asked of a file without pairs: its own edges are held out."""
    from gmn_prep.datasets.links import hold_out_links

    if wish.kind not in (None, "binary"):
        raise DatasetError(f"a link task on held-out edges is binary, not {wish.kind}; or give pairs and their labels")
    graph = Graph.from_edges(
        edges,
        nodes,
        edge_attr=arrays.get("edge_attr"),
        directed=options.directed or bool(arrays.get("directed", False)),
        x=arrays.get("x"),
        graph_ptr=arrays.get("graph_ptr"),
    )
    return hold_out_links(graph, options.seed, link_metric(options))


def _edge_rows(arrays: dict[str, Any]) -> tuple[Array, int | None]:
    """(E, 2) edges, and the number of nodes if anything tells it."""
    told = arrays.get("num_nodes")
    nodes = int(told) if told is not None else len(arrays["x"]) if "x" in arrays else None
    forms = [form for form in ("edge_index", "edges", "indptr") if form in arrays]
    if len(forms) != 1 or ("indptr" in arrays) != ("indices" in arrays):
        found = ", ".join(key for key in EDGES if key in arrays) or "none of them"
        raise DatasetError(f"found {found}; give edges as edge_index, as edges, or as indptr and indices")
    if "indptr" in arrays:
        rows = Graph(arrays["indptr"], arrays["indices"], directed=True)  # checks the pointers before they are used
        return np.stack([rows.slot_sources, rows.indices], axis=1), nodes or rows.num_nodes
    edges = np.asarray(arrays[forms[0]])
    wanted = (2, "E") if forms[0] == "edge_index" else ("E", 2)
    if edges.ndim != 2 or edges.shape[wanted.index(2)] != 2:
        raise DatasetError(f"{forms[0]} has shape {edges.shape}; it must be ({wanted[0]}, {wanted[1]})")
    return edges.T if forms[0] == "edge_index" else edges, nodes


def _read_splits(arrays: dict[str, Any]) -> Array | None:
    """(splits, items) codes from `splits`, or from masks of shape (items,) or (items, splits)."""
    masks = {key: np.atleast_2d(np.asarray(arrays[key]).T) for key in MASKS if key in arrays}
    if "splits" in arrays or not masks:
        if masks:
            raise DatasetError(f"found splits and {', '.join(masks)}; give one or the other")
        return arrays.get("splits")
    shapes = {mask.shape for mask in masks.values()}
    if len(shapes) > 1 or any(mask.dtype != np.bool_ for mask in masks.values()):
        raise DatasetError("masks must be boolean and of one shape: (items,) or (items, splits)")
    splits = np.zeros(shapes.pop(), dtype=np.uint8)
    for key, mask in masks.items():
        if np.any(splits[mask]):
            raise DatasetError(f"{key} overlaps another mask; an item is in one part of a split only")
        splits[mask] = MASKS[key]
    return splits


def _draw_split(graph: Graph, seed: int) -> Array:
    """A random split of the items whose label is known."""
    y = graph.y
    assert y is not None
    known = ~np.isnan(y).all(axis=1) if y.dtype.kind == "f" else y >= 0
    return draw_splits(graph.num_items, SHARES, seed, strata=np.where(known, 0, -1))
