"""Columns of a table as features: numbers as they are, dates as days, text as a column of 0 and 1 per value."""

from typing import Any

import numpy as np

from gmn_pipeline.console.output import size_text
from gmn_pipeline.errors import DatasetError
from gmn_pipeline.types import Array
from gmn_prep.datasets.user.tables.table_file import UserTable
from gmn_prep.datasets.user.tables.written_values import FEW, MISSING

MOST_VALUES = 256
"""Of a column of text. The commonest of more could be kept, but another file's commonest are others."""
MOST_BYTES = 4 << 30
"""Of all features that came from text: a column of 256 values takes 1 kB a row."""
DAY = 86_400_000_000


def stack_features(table: UserTable, notes: list[str]) -> tuple[Array, tuple[str, ...]]:
    """(rows, F) float32 of all columns left, and a name each. An empty field is NaN; of text, zeros."""
    arrays: list[Array] = []
    names: list[str] = []
    for name, column in table.columns.items():
        columns, column_names = _columns(name, column, table, notes)
        arrays += columns
        names += column_names
        room = 4 * len(table) * sum(array.dtype == np.bool_ for array in arrays)
        if room > MOST_BYTES:
            most = size_text(MOST_BYTES)
            raise DatasetError(
                f"columns of text up to '{name}' of {table.path.name} take {size_text(room)} as categories of "
                f"{len(table):,} rows, more than {most}; leave one out with --drop {name}, or encode it"
            )
    out = np.empty((len(table), len(arrays)), dtype=np.float32)
    for place, array in enumerate(arrays):
        out[:, place] = array
    return out, tuple(names)


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
    column = pc.if_else(pc.is_in(column, value_set=pa.array(MISSING)), None, column)
    count, known = pc.count_distinct(column).as_py(), len(column) - column.null_count
    if count > MOST_VALUES or (count > FEW and 2 * count > known):
        example = column.drop_null()[0].as_py()[:40]
        repeated = f"too many for categories (at most {MOST_VALUES}); join the rare ones, or leave"
        what = "names rather than categories; leave" if 2 * count > known else repeated
        raise DatasetError(
            f"column '{name}' of {table.path.name} holds {count:,} different texts in {known:,} rows, as '{example}': "
            f"{what} it out with --drop {name}"
        )
    values = sorted(set(pc.unique(column).to_pylist()) - {None})
    notes.append(f"column '{name}' of {table.path.name} is text: read as {len(values)} categories")
    indicators = [np.asarray(pc.fill_null(pc.equal(column, value), False)) for value in values]
    return indicators, [f"{name}={value}" for value in values]


def _one_per_place(name: str, column: Any, table: UserTable) -> tuple[list[Array], list[str]]:
    import pyarrow.compute as pc

    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) > 1 or None in lengths:
        raise DatasetError(f"column '{name}' of {table.path.name} holds lists of different lengths; drop or pad it")
    count = lengths[0] if lengths else 0
    parts = [read_numbers(name, pc.list_element(column, i), table).astype(np.float32) for i in range(count)]
    return parts, [f"{name}[{i}]" for i in range(count)]
