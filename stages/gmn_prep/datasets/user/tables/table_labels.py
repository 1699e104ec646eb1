"""Label columns of a table as arrays: numbers with NaN where empty, or text."""

from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets.user.labels import UNKNOWN
from gmn_prep.datasets.user.tables.table_features import read_numbers
from gmn_prep.datasets.user.tables.table_file import UserTable
from gmn_prep.datasets.user.tables.written_values import MISSING


def read_label_columns(columns: dict[str, Any], table: UserTable) -> dict[str, Any]:
    """`y` of the .npz format: one column as it is, several side by side with their names as `class_names`.

    Text is an array of text, empty where unknown; whole numbers stay whole, UNKNOWN where empty.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(columns) > 1:
        numbers = [read_numbers(name, column, table) for name, column in columns.items()]
        return {"y": np.stack(numbers, axis=1), "class_names": tuple(columns)}
    ((name, column),) = columns.items()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
        return {"y": np.asarray(pc.fill_null(column.cast(pa.int64()), UNKNOWN))}
    if pa.types.is_boolean(column.type):
        column = pc.if_else(column, "True", "False")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = pc.fill_null(pc.utf8_trim_whitespace(column.cast(pa.string())), "")
        missing = pc.is_in(texts, value_set=pa.array(MISSING))
        return {"y": pc.if_else(missing, "", texts).to_numpy(zero_copy_only=False).astype(str)}
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        raise DatasetError(f"label column '{name}' of {table.path.name} holds dates; choose another with --label")
    return {"y": read_numbers(name, column, table)}
