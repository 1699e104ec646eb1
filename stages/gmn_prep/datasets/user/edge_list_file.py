"""The user's own graph as a table of edges, with a table of nodes beside it: CSV, TSV or Parquet.

edges.csv   src, dst, and any further columns of numbers: edge features
nodes.csv   id, [label], [split], and any further columns of numbers: node features

Without a table of nodes, whole-number ids are node numbers as they are, and text ids are numbered in sorted
order. With one, nodes are numbered in its order and every edge must name one of its ids.
"""

from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.types import Array
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.user.table_columns import read_labels, read_parts, read_table, stack_numbers, take_column

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")


def find_node_table(path: Path, options: DatasetOptions) -> Path | None:
    """The table of nodes: as told, or beside the edges as `nodes`, `NAME_nodes` or `NAME.nodes`."""
    if options.node_table is not None:
        if not options.node_table.is_file():
            raise DatasetError(f"node table {options.node_table} does not exist")
        return options.node_table
    stem = path.stem
    stems = [f"{stem}_nodes", f"{stem}.nodes"]
    if stem.endswith("edges"):
        stems.insert(0, stem.removesuffix("edges") + "nodes")
    beside = (path.with_name(name + suffix) for name in stems for suffix in (path.suffix, *TABLE_SUFFIXES))
    return next((table for table in beside if table.is_file()), None)


def read_edge_list(path: Path, options: DatasetOptions) -> dict[str, Any]:
    """The arrays of the .npz format that the tables hold."""
    edges = read_table(path)
    src, dst = take_column(edges, "src", path), take_column(edges, "dst", path)
    table = find_node_table(path, options)
    arrays: dict[str, Any] = {}
    if table is None:
        arrays["edges"] = _number_ids(src, dst, path)
    else:
        nodes = read_table(table)
        ids = take_column(nodes, "id", table)
        arrays["edges"] = np.stack([_look_up(column, ids, path, table) for column in (src, dst)], axis=1)
        arrays["num_nodes"] = len(ids)
        label, split = (take_column(nodes, name, table, optional=True) for name in ("label", "split"))
        if label is not None:
            arrays["y"] = read_labels(label)
        if split is not None:
            arrays["splits"] = read_parts(split, table)
        if nodes:
            arrays["x"] = stack_numbers(nodes, table)
    if edges:
        arrays["edge_attr"] = stack_numbers(edges, path)
    return arrays


def _number_ids(src: Any, dst: Any, path: Path) -> Array:
    import pyarrow as pa

    if src.null_count or dst.null_count:
        raise DatasetError(f"{path.name} has edges with an empty end; fill or drop them")
    if pa.types.is_integer(src.type) and pa.types.is_integer(dst.type):
        return np.stack([src.to_numpy(), dst.to_numpy()], axis=1)
    both = [column.cast(pa.string()).to_numpy(zero_copy_only=False).astype(str) for column in (src, dst)]
    _, numbers = np.unique(np.stack(both, axis=1), return_inverse=True)
    return numbers.reshape(-1, 2)


def _look_up(column: Any, ids: Any, path: Path, table: Path) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if ids.null_count or len(pc.unique(ids)) != len(ids):
        raise DatasetError(f"{table.name} has empty or repeated ids; each node needs one of its own")
    try:
        rows = pc.index_in(column.cast(ids.type), value_set=ids)
    except pa.ArrowInvalid as error:
        raise DatasetError(f"{path.name} and {table.name} name nodes by different types of id ({error})") from error
    if rows.null_count:
        stranger = column.filter(pc.is_null(rows))[0].as_py()
        raise DatasetError(f"{path.name} names node {stranger!r}, which {table.name} does not list")
    return np.asarray(rows)
