"""The part each column of a table plays: as the user says, or by its usual name."""

from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, nearest
from gmn_pipeline.graph import TEST, TRAIN, VAL, Texts
from gmn_pipeline.types import Array
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.user.tables.table_file import UserTable

COLUMNS = {
    "src": ("src", "source", "from", "u"),
    "dst": ("dst", "target", "to", "v"),
    "id": ("id", "node", "node_id"),
    "label": ("label", "y", "target", "class"),
    "split": ("split",),
    "graph": ("graph", "graph_id"),
}
PLACES = {"src": "0", "dst": "1", "id": "0"}
"""Default place of a column in a table without a header."""
PARTS = {
    **dict.fromkeys(("train", "training"), TRAIN),
    **dict.fromkeys(("val", "valid", "validation", "dev"), VAL),
    **dict.fromkeys(("test", "testing"), TEST),
    "": 0,
}


def id_names(options: DatasetOptions, *roles: str) -> tuple[str, ...]:
    """Names, in lower case, of columns that hold ids: they are read as text."""
    given = [getattr(options, role, None) for role in roles]
    usual = [name for role in roles for name in (*COLUMNS[role], PLACES.get(role))]
    return tuple(str(name).lower() for name in (*given, *usual) if name)


def take_column(table: UserTable, role: str, column_name: str | None = None, *, optional: bool = False) -> Any:
    """Remove and return the column that plays a role, whatever the case of its name; None if there is none."""
    if column_name is not None:
        return take_named(table, column_name)
    wanted = COLUMNS[role] if table.header else (PLACES.get(role, ""),)
    for allowed in wanted:
        for name in table.columns:
            if name.lower() == allowed:
                return table.columns.pop(name)
    if optional:
        return None
    near = next((hint for hint in (nearest(name.lower(), COLUMNS[role]) for name in table.columns) if hint), "")
    raise DatasetError(
        f"{table.path.name} has columns {', '.join(table.columns) or 'no more'}; it needs one named "
        f"{' or '.join(COLUMNS[role])}{near}; or give its name with --{role}, and --no-header "
        "if the first row is not a header"
    )


def take_named(table: UserTable, name: str) -> Any:
    """Remove and return the column of that name."""
    if name not in table.columns:
        raise DatasetError(
            f"{table.path.name} has no column '{name}'; it has {', '.join(table.columns) or 'no more'}"
            f"{nearest(name, tuple(table.columns))}"
        )
    return table.columns.pop(name)


def keep_features(tables: list[UserTable], features: tuple[str, ...], drop: tuple[str, ...]) -> None:
    """Leave the columns that are features: those named, or all but those dropped. Each must be in some table."""
    there = [name for table in tables for name in table.columns]
    gone = [name for table in tables for name in table.dropped]
    for option, names in (("--features", features), ("--drop", drop)):
        for name in names:
            if name not in there and (option == "--features" or name not in gone):
                hint = nearest(name, tuple(there))
                raise DatasetError(f"{option} names '{name}'; columns that can be features: {', '.join(there)}{hint}")
    for table in tables:
        for name in list(table.columns):
            if name in drop or (features and name not in features):
                del table.columns[name]


def read_ids(column: Any, table: UserTable) -> Any:
    """Ids as text, without spaces around; of whole numbers that became 1.0, 2.0, ... the number. No empty ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type) and pc.all(pc.equal(pc.floor(column), column)).as_py():
        column = column.cast(pa.int64())
    try:
        ids = pc.utf8_trim_whitespace(column.cast(pa.string()))
    except pa.ArrowNotImplementedError as error:
        raise DatasetError(f"{table.path.name} has ids of type {column.type}; ids are text or numbers") from error
    if ids.null_count or pc.any(pc.equal(ids, "")).as_py():
        raise DatasetError(f"{table.path.name} has rows with an empty id; fill or drop them")
    if len(ids) and pc.all(pc.match_substring_regex(ids, r"^-?\d+\.0$")).as_py():
        ids = pc.replace_substring_regex(ids, r"\.0$", "")
    return ids


def sort_rows(table: UserTable, role: str, column_name: str | None = None) -> None:
    """Put the rows in the order of their ids, so that a shuffled file is the same graph."""
    columns = dict(table.columns)
    order = sort_ids(read_ids(take_column(table, role, column_name), table))
    table.columns = {name: values.take(order) for name, values in columns.items()}


def sort_ids(ids: Any) -> Any:
    """Where each id of the sorted list stands: by number where all are whole numbers, else as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.sort_indices(ids.cast(pa.int64()) if are_numbers(ids) else ids)


def are_numbers(ids: Any) -> bool:
    """Whether all ids are whole numbers as one writes them, not so long as to leave 64 bits."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(ids, r"^(0|[1-9]\d{0,17})$")).as_py())


def keep_ids(ids: Any) -> Texts:
    """Ids as a graph keeps them, without a Python object for each."""
    import pyarrow as pa

    ids = ids.cast(pa.large_string())
    _, ptr, content = pa.concat_arrays([ids]).buffers()  # without an offset
    ptr = np.frombuffer(ptr, dtype=np.int64)[: len(ids) + 1] if ptr is not None else np.zeros(1, dtype=np.int64)
    return Texts(ptr, np.frombuffer(content or b"", dtype=np.uint8)[: int(ptr[-1])])


def read_parts(column: Any, table: UserTable) -> Array:
    """(rows,) uint8 codes of a column of train, val, test."""
    import pyarrow.compute as pc

    values = pc.unique(column)  # few: no Python object for each row
    names = ["" if name is None else str(name).strip().lower() for name in values.to_pylist()]
    strange = sorted(set(names) - set(PARTS))
    if strange:
        raise DatasetError(
            f"{table.path.name} has split '{strange[0]}'; allowed: train, val, test, or empty"
            f"{nearest(strange[0], tuple(PARTS))}"
        )
    codes = np.array([PARTS[name] for name in names], dtype=np.uint8)
    return codes[np.asarray(pc.index_in(column, value_set=values))]
