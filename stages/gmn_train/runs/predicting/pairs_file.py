"""The file of `gmn-train predict --pairs`: pairs of nodes that the user names. No torch here."""

from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, nearest
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import IntArray

SEPARATORS = (",", "\t", ";", "|", " ")
ENDS = (("src", "dst"), ("source", "target"), ("from", "to"))
"""Names of its two columns."""


def read_pairs(file: Path) -> tuple[list[str], list[str]]:
    """Both ends of every pair, as they are called. Raises DatasetError."""
    table = _read_table(file)
    names = {name.strip().lower(): name for name in table.column_names}
    ends = next((pair for pair in ENDS if pair[0] in names and pair[1] in names), None)
    if ends is None:
        raise DatasetError(
            f"{file} needs two columns, named src and dst in its first row; it has {', '.join(table.column_names)}"
        )
    src, dst = ([str(value).strip() for value in table[names[end]].to_pylist()] for end in ends)
    return src, dst


def name_nodes(file: Path, pairs: tuple[list[str], list[str]], graph: Graph) -> IntArray:
    """(K, 2) the nodes that are called so, by the user's ids or by number. Raises DatasetError."""
    ids = graph.node_ids
    rows = []
    for column in pairs:
        places = (
            np.array([int(text) if text.isdigit() and int(text) < graph.num_nodes else -1 for text in column], np.int64)
            if ids is None
            else ids.rows(column)
        )
        if (places < 0).any():
            raise DatasetError(f"{file} names '{column[int(np.argmax(places < 0))]}', which is not a node of the store")
        rows.append(places)
    return np.stack(rows, 1).astype(np.int64)


def _read_table(file: Path) -> Any:
    import pyarrow as pa

    if not file.exists():
        beside = [other.name for other in file.parent.iterdir() if other.is_file()] if file.parent.is_dir() else []
        raise DatasetError(f"there is no file {file}{nearest(file.name, beside)}; give a .csv or .parquet table")
    try:
        if file.suffix == ".parquet":
            from pyarrow import parquet

            return parquet.read_table(file)
        from pyarrow import csv

        with file.open("rb") as opened:
            header = opened.readline().decode("utf-8-sig", errors="replace")
        separator = max(SEPARATORS, key=header.count)
        texts = {name.strip().strip('"'): pa.string() for name in header.split(separator)}  # ids: 007 is not 7
        return csv.read_csv(
            file,
            parse_options=csv.ParseOptions(delimiter=separator),
            convert_options=csv.ConvertOptions(column_types=texts),
        )
    except (OSError, pa.ArrowException) as error:
        raise DatasetError(
            f"{file} cannot be read: {str(error).splitlines()[0]}; give a .csv or .parquet table"
        ) from None
