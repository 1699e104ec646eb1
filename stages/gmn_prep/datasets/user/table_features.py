"""Columns of a table as features: numbers as they are, dates as days, text as a column of 0 and 1 per value."""

from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.types import Array
from gmn_prep.datasets.user.table_columns import MISSING
from gmn_prep.datasets.user.table_file import UserTable

MOST_VALUES = 256
"""Of a column of text: more are names of things, not kinds of things."""
DAY = 86_400_000_000


def stack_features(table: UserTable, notes: list[str]) -> tuple[Array, tuple[str, ...]]:
    """(rows, F) float32 of all columns left, and a name each. An empty field is NaN; of text, zeros."""
    arrays: list[Array] = []
    names: list[str] = []
    for name, column in table.columns.items():
        columns, column_names = _columns(name, column, table, notes)
        arrays += columns
        names += column_names
    rows = len(next(iter(table.columns.values())))
    return np.stack(arrays, axis=1) if arrays else np.zeros((rows, 0), dtype=np.float32), tuple(names)


def _columns(name: str, column: Any, table: UserTable, notes: list[str]) -> tuple[list[Array], list[str]]:
    import pyarrow as pa

    kind = pa.types
    if kind.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind.is_string(column.type) or kind.is_large_string(column.type) or kind.is_string_view(column.type):
        return _one_per_value(name, column, table, notes)
    if kind.is_list(column.type) or kind.is_large_list(column.type) or kind.is_fixed_size_list(column.type):
        return _one_per_place(name, column, table)
    if kind.is_date(column.type) or kind.is_timestamp(column.type):
        notes.append(f"column '{name}' of {table.path.name} is a date: read as days since 1970")
    values = read_numbers(name, column, table)
    empty = np.count_nonzero(np.isnan(values))
    if empty:
        raise DatasetError(
            f"column '{name}' of {table.path.name} has {empty:,} empty fields; fill them, or leave it out with "
            f"--drop {name}"
        )
    return [values.astype(np.float32)], [name]


def read_numbers(name: str, column: Any, table: UserTable) -> Array:
    """(rows,) float64 of a column of numbers, booleans or dates; NaN where empty. Raises DatasetError for others."""
    import pyarrow as pa

    kind = pa.types
    if kind.is_date(column.type) or kind.is_timestamp(column.type):
        micros = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return np.asarray(micros.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / DAY)
    if not (kind.is_integer(column.type) or kind.is_floating(column.type) or kind.is_boolean(column.type)
            or kind.is_decimal(column.type) or kind.is_null(column.type)):  # fmt: skip
        raise DatasetError(
            f"column '{name}' of {table.path.name} is of type {column.type}, not of numbers; encode it as numbers, or "
            f"leave it out with --drop {name}"
        )
    if kind.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _one_per_value(name: str, column: Any, table: UserTable, notes: list[str]) -> tuple[list[Array], list[str]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.utf8_trim_whitespace(column.cast(pa.string()))
    values = sorted(set(pc.unique(column).to_pylist()) - {None, *MISSING})
    if len(values) > MOST_VALUES:
        raise DatasetError(
            f"column '{name}' of {table.path.name} holds {len(values):,} different texts, as '{values[0][:40]}'; at "
            f"most {MOST_VALUES} can be categories; leave it out with --drop {name}"
        )
    notes.append(f"column '{name}' of {table.path.name} is text: read as {len(values)} categories")
    indicators = [np.asarray(pc.fill_null(pc.equal(column, value), False)).astype(np.float32) for value in values]
    return indicators, [f"{name}={value}" for value in values]


def _one_per_place(name: str, column: Any, table: UserTable) -> tuple[list[Array], list[str]]:
    import pyarrow.compute as pc

    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) > 1 or None in lengths:
        raise DatasetError(f"column '{name}' of {table.path.name} holds lists of different lengths; drop or pad it")
    count = lengths[0] if lengths else 0
    parts = [read_numbers(name, pc.list_element(column, i), table).astype(np.float32) for i in range(count)]
    return parts, [f"{name}[{i}]" for i in range(count)]
