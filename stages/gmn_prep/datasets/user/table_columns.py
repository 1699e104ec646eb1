"""Columns of CSV, TSV and Parquet tables: found by the part they play, turned into arrays."""

from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, nearest
from gmn_pipeline.graph import TEST, TRAIN, VAL
from gmn_pipeline.types import Array

COLUMNS = {
    "src": ("src", "source", "from", "u"),
    "dst": ("dst", "target", "to", "v"),
    "id": ("id", "node", "node_id"),
    "label": ("label", "y", "target", "class"),
    "split": ("split",),
}
PARTS = {"train": TRAIN, "val": VAL, "valid": VAL, "validation": VAL, "test": TEST, "": 0}


def read_table(path: Path) -> dict[str, Any]:
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
        raise DatasetError(f"{path.name} cannot be read as a table ({' '.join(str(error).split())})") from error
    return {name: table.column(name).combine_chunks() for name in table.column_names}


def take_column(table: dict[str, Any], role: str, path: Path, *, optional: bool = False) -> Any:
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


def read_labels(column: Any) -> Array:
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


def read_parts(column: Any, table: Path) -> Array:
    names = ["" if name is None else str(name).strip().lower() for name in column.to_pylist()]
    strange = sorted(set(names) - set(PARTS))
    if strange:
        raise DatasetError(
            f"{table.name} has split '{strange[0]}'; allowed: train, val, test, or empty"
            f"{nearest(strange[0], tuple(PARTS))}"
        )
    return np.array([PARTS[name] for name in names], dtype=np.uint8)


def stack_numbers(columns: dict[str, Any], path: Path) -> Array:
    """(rows, columns) float32; an empty field is NaN."""
    import pyarrow as pa

    out = []
    for name, column in columns.items():
        if not (
            pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)
        ):
            raise DatasetError(f"column '{name}' of {path.name} is not of numbers; encode it as numbers or drop it")
        out.append(column.cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False))
    return np.stack(out, axis=1)
