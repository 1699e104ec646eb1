"""The user's own graph as a table of edges, with a table of nodes beside it: CSV, TSV or Parquet.

edges.csv   src, dst, and any further columns of numbers: edge features
nodes.csv   id, [label], [split], and any further columns of numbers: node features

Without a table of nodes, whole-number ids are node numbers as they are, and text ids are numbered in sorted
order. With one, nodes are numbered in its order and every edge must name one of its ids.
"""

from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, nearest
from gmn_pipeline.graph import TEST, TRAIN, VAL
from gmn_pipeline.types import Array
from gmn_prep.datasets.entry import DatasetOptions

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
COLUMNS = {
    "src": ("src", "source", "from", "u"),
    "dst": ("dst", "target", "to", "v"),
    "id": ("id", "node", "node_id"),
    "label": ("label", "y", "target", "class"),
    "split": ("split",),
}
PARTS = {"train": TRAIN, "val": VAL, "valid": VAL, "validation": VAL, "test": TEST, "": 0}


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
    edges = _read_table(path)
    src, dst = _take(edges, "src", path), _take(edges, "dst", path)
    table = find_node_table(path, options)
    arrays: dict[str, Any] = {}
    if table is None:
        arrays["edges"] = _number_ids(src, dst, path)
    else:
        nodes = _read_table(table)
        ids = _take(nodes, "id", table)
        arrays["edges"] = np.stack([_look_up(column, ids, path, table) for column in (src, dst)], axis=1)
        arrays["num_nodes"] = len(ids)
        label, split = (_take(nodes, name, table, optional=True) for name in ("label", "split"))
        if label is not None:
            arrays["y"] = _read_labels(label)
        if split is not None:
            arrays["splits"] = _read_parts(split, table)
        if nodes:
            arrays["x"] = _stack_numbers(nodes, table)
    if edges:
        arrays["edge_attr"] = _stack_numbers(edges, path)
    return arrays


def _read_table(path: Path) -> dict[str, Any]:
    """Columns by name, as one Arrow array each."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        if path.suffix == ".parquet":
            table = parquet.read_table(path)
        else:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter))
    except (pa.ArrowInvalid, OSError) as error:
        raise DatasetError(
            f"{path.name} cannot be read as a table ({' '.join(str(error).split())})"
        ) from error
    return {name: table.column(name).combine_chunks() for name in table.column_names}


def _take(table: dict[str, Any], role: str, path: Path, *, optional: bool = False) -> Any:
    """Remove and return the column that plays a role, whatever the case of its name."""
    for allowed in COLUMNS[role]:
        for name in table:
            if name.strip().lower() == allowed:
                return table.pop(name)
    if optional:
        return None
    near = next((hint for hint in (nearest(name.lower(), COLUMNS[role]) for name in table) if hint), "")
    raise DatasetError(
        f"{path.name} has columns {', '.join(table) or 'no more'}; it needs one named "
        f"{' or '.join(COLUMNS[role])}{near}"
    )


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
        raise DatasetError(
            f"{path.name} and {table.name} name nodes by different types of id ({error})"
        ) from error
    if rows.null_count:
        stranger = column.filter(pc.is_null(rows))[0].as_py()
        raise DatasetError(f"{path.name} names node {stranger!r}, which {table.name} does not list")
    return np.asarray(rows)


def _read_labels(column: Any) -> Array:
    """Whole numbers with -1 where empty, fractions with NaN, or text as classes in sorted order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        return np.asarray(pc.fill_null(column, float("nan")))
    if pa.types.is_integer(column.type):
        return np.asarray(pc.fill_null(column, -1))
    if pa.types.is_boolean(column.type):
        return np.asarray(pc.fill_null(column.cast(pa.int64()), -1))
    column = column.cast(pa.string())
    column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    classes = pa.array(sorted(pc.unique(column.drop_null()).to_pylist()), pa.string())
    numbers = pc.index_in(column, value_set=classes, skip_nulls=True)
    return np.asarray(pc.fill_null(numbers, -1)).astype(np.int64)


def _read_parts(column: Any, table: Path) -> Array:
    names = ["" if name is None else str(name).strip().lower() for name in column.to_pylist()]
    strange = sorted(set(names) - set(PARTS))
    if strange:
        raise DatasetError(
            f"{table.name} has split '{strange[0]}'; allowed: train, val, test, or empty"
            f"{nearest(strange[0], tuple(PARTS))}"
        )
    return np.array([PARTS[name] for name in names], dtype=np.uint8)


def _stack_numbers(columns: dict[str, Any], path: Path) -> Array:
    """(rows, columns) float32; an empty field is NaN."""
    import pyarrow as pa

    out = []
    for name, column in columns.items():
        if not (
            pa.types.is_integer(column.type)
            or pa.types.is_floating(column.type)
            or pa.types.is_boolean(column.type)
        ):
            raise DatasetError(
                f"column '{name}' of {path.name} is not of numbers; encode it as numbers or drop it"
            )
        out.append(column.cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False))
    return np.stack(out, axis=1)
