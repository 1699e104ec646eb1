"""The user's own graph as a table of edges, with a table of nodes beside it.

edges.csv   src, dst, and any further columns: edge features
nodes.csv   id, [label], [split], [graph], and any further columns: node features
graphs.csv  id, [label], [split]: where there are many graphs

Ids are text. Nodes are numbered in the sorted order of their ids, so the order of rows means nothing: a shuffled file
gives the same graph, the same walks and the same predictions. With a table of nodes, every edge must name one of its
ids. Without one, whole numbers that leave few gaps are node numbers.
"""

from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.types import Array
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.user.tables.graph_table import find_graph_table, group_nodes
from gmn_prep.datasets.user.tables.repeated_edges import put_smallest_first
from gmn_prep.datasets.user.tables.table_columns import (
    COLUMNS,
    are_numbers,
    id_names,
    keep_features,
    keep_ids,
    read_ids,
    read_parts,
    sort_ids,
    sort_rows,
    take_column,
    take_named,
)
from gmn_prep.datasets.user.tables.table_features import read_numbers, stack_features
from gmn_prep.datasets.user.tables.table_file import UserTable, read_tables
from gmn_prep.datasets.user.tables.table_labels import read_label_columns
from gmn_prep.datasets.user.tables.table_path import find_beside, list_files, say_missing, stem
from gmn_prep.datasets.user.user_splits import MASKS
from gmn_prep.datasets.user.user_task import parse_task


def find_node_table(path: Path, options: DatasetOptions) -> Path | None:
    """The table of nodes: as given, or beside the edges as `nodes`, `NAME_nodes` or `NAME.nodes`."""
    if options.node_table is not None:
        missing = [file for file in list_files(options.node_table) if not file.is_file()]
        if missing:
            raise DatasetError(f"node table {say_missing(missing[0])}")
        return options.node_table
    name = stem(path).lower()
    stems = [f"{name}_nodes", f"{name}.nodes"]
    if name.endswith("edges"):
        stems.insert(0, name.removesuffix("edges") + "nodes")
    return find_beside(path, stems)


def read_edge_list(path: Path, options: DatasetOptions) -> tuple[dict[str, Any], list[str]]:
    """The arrays of the .npz format that the tables hold, and notes."""
    notes: list[str] = []
    how: dict[str, Any] = {"header": options.header, "notes": notes, "drop": options.drop}
    edges = read_tables(path, id_names(options, "src", "dst"), **how)
    ends = [read_ids(take_column(edges, role, getattr(options, role)), edges) for role in ("src", "dst")]
    place = find_node_table(path, options)
    arrays: dict[str, Any] = {}
    nodes, read = None, [edges]
    if place is None:
        for option in ("id", "label", "time"):
            if getattr(options, option) is not None:
                raise DatasetError(
                    f"--{option} names a column of the table of nodes, which is missing; give --node-table"
                )
        arrays |= _number_ends(ends[0], ends[1], edges, notes)
    else:
        nodes = read_tables(place, id_names(options, "id", "graph"), **how)
        place = find_graph_table(path)
        graphs = place and read_tables(place, id_names(options, "id"), **how)
        sort_rows(nodes, "id", options.id)
        arrays |= group_nodes(nodes, graphs or None)
        ids = read_ids(take_column(nodes, "id", options.id), nodes)
        arrays["edges"] = np.stack([_look_up(column, ids, edges, nodes) for column in ends], axis=1)
        arrays["num_nodes"] = len(ids)
        arrays["node_ids"] = keep_ids(ids)
        items = read_items(graphs or nodes, options)
        if "y" in items or not graphs:
            arrays |= items | ({"level": "graph"} if graphs else {})
        labelled = graphs or nodes
        if "y" not in arrays and labelled.columns and parse_task(options.task)[0] != "link":
            usual = ", ".join(COLUMNS["label"])
            notes.append(f"no column of {labelled.path.name} is called {usual}: no labels; --label names one")
        read = [edges, nodes]
        if graphs:
            notes += [f"{graphs.path.name}: left aside {', '.join(graphs.columns)}"] if graphs.columns else []
            read.append(UserTable(graphs.path, {}, dropped=graphs.dropped))
    keep_features(read, options.features, options.drop)
    for table, key, names in ((nodes, "x", "x_names"), (edges, "edge_attr", "edge_names")):
        if table is not None and table.columns:
            arrays[key], arrays[names] = stack_features(table, notes)
    if "edge_attr" in arrays:
        given = (arrays["edges"], arrays["edge_attr"], arrays["edge_names"])
        arrays["edges"], arrays["edge_attr"], differ = put_smallest_first(*given)
        if differ:
            notes.append(f"{edges.path.name} lists {differ:,} edges again with other features: the smallest are kept")
    return arrays, notes


def item_names(nodes: UserTable, options: DatasetOptions) -> list[str]:
    """Remove the columns that `read_items` reads; returns their names."""
    before = list(nodes.columns)
    _take_labels(nodes, options)
    if options.time is not None:
        take_named(nodes, options.time)
    take_column(nodes, "split", optional=True)
    for name in [name for name in nodes.columns if name.lower() in MASKS]:
        nodes.columns.pop(name)
    return [name for name in before if name not in nodes.columns]


def _take_labels(nodes: UserTable, options: DatasetOptions) -> dict[str, Any]:
    label_option = options.label
    if label_option is not None and label_option not in nodes.columns and "," in label_option:
        return {name.strip(): take_named(nodes, name.strip()) for name in label_option.split(",")}
    name = label_option or next(
        (c for a in COLUMNS["label"] for c in nodes.columns if c.lower() == a and nodes.header), None
    )
    return {} if name is None else {name: take_named(nodes, name)}


def read_items(nodes: UserTable, options: DatasetOptions) -> dict[str, Any]:
    """Labels, splits and times of the nodes, or graphs, as far as the table has them."""
    arrays: dict[str, Any] = {}
    labels = _take_labels(nodes, options)
    if labels:
        arrays |= read_label_columns(labels, nodes)
    if options.time is not None:
        arrays["time"] = read_numbers(options.time, take_named(nodes, options.time), nodes)
    split = take_column(nodes, "split", optional=True)
    if split is not None:
        arrays["splits"] = read_parts(split, nodes)
    for name in [name for name in nodes.columns if name.lower() in MASKS]:
        arrays[name.lower()] = read_numbers(name, nodes.columns.pop(name), nodes) == 1
    return arrays


def _number_ends(src: Any, dst: Any, edges: UserTable, notes: list[str]) -> dict[str, Any]:
    """Edges of ids that no table lists."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(src):
        raise DatasetError(f"{edges.path.name} has no rows, and the table of nodes is missing; there is nothing to do")
    both = pa.chunked_array([src, dst])
    ids = pc.unique(both)
    if are_numbers(ids):
        numbers = [np.asarray(column.cast(pa.int64())) for column in (src, dst)]
        count = 1 + max(int(column.max()) for column in numbers)
        if count <= 1000 + 2 * len(ids):
            return {"edges": np.stack(numbers, axis=1)}
        notes.append(f"{edges.path.name} names {len(ids):,} nodes up to {count - 1:,}: read as names, not as numbers")
    ids = ids.take(sort_ids(ids))
    ends = [np.asarray(pc.index_in(column, value_set=ids)) for column in (src, dst)]
    return {"edges": np.stack(ends, axis=1), "num_nodes": len(ids), "node_ids": keep_ids(ids)}


def _look_up(column: Any, ids: Any, edges: UserTable, nodes: UserTable) -> Array:
    import pyarrow.compute as pc

    if len(pc.unique(ids)) != len(ids):
        counts = pc.value_counts(ids)
        twice = counts.field("values")[int(np.argmax(np.asarray(counts.field("counts"))))].as_py()
        raise DatasetError(f"{nodes.path.name} lists node '{twice}' more than once; each node needs one row")
    rows = pc.index_in(column, value_set=ids)
    if rows.null_count:
        stranger = column.filter(pc.is_null(rows))[0].as_py()
        raise DatasetError(f"{edges.path.name} names node '{stranger}', which {nodes.path.name} does not list")
    return np.asarray(rows).astype(np.int64)
