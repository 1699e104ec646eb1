"""A table of nodes read piece by piece: features go to disk, labels and splits, which are small, into memory.

Ids must be 0, 1, 2, ... in the order of the rows, and features numbers.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, one_line
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.user.tables.edge_list_file import item_names, read_items
from gmn_prep.datasets.user.tables.table_columns import id_names, read_ids, take_column
from gmn_prep.datasets.user.tables.table_features import stack_features
from gmn_prep.datasets.user.tables.table_file import UserTable, csv_options, sniff_text
from gmn_prep.datasets.user.tables.table_path import ending, list_files

ROWS = 1 << 16


class NodeStream:
    """The tables of nodes that a path stands for. `features` are names, of which the caller may take some away."""

    def __init__(self, path: Path, options: DatasetOptions, notes: list[str]) -> None:
        import pyarrow as pa

        self.path, self._options, self._notes = path, options, notes
        try:
            names = next(self._pieces()).schema.names
        except (pa.ArrowInvalid, OSError, StopIteration) as error:
            raise self._unreadable(error) from error
        self._header = ending(path) == ".parquet" or not all(name.isdigit() for name in names)
        dropped = tuple(name for name in names if name in options.drop)
        kept = {name: name for name in names if name not in dropped}
        self.features = UserTable(path, kept, self._header, dropped)
        self._id = take_column(self.features, "id", options.id)
        take_column(self.features, "graph", optional=True)
        self._items = item_names(self.features, options)
        if "graph" in (name.lower() for name in names if name not in dropped):
            raise DatasetError(f"{path.name} tells graphs apart, which --memory does not; leave --memory out")

    def count_features(self) -> int:
        """How many columns `x` will have, from the first rows."""
        piece = next(self._pieces())
        return len(self._stack(dict(zip(piece.schema.names, piece.columns, strict=True)), first=False)[1])

    def read(self, folder: Path) -> dict[str, Any]:
        """The arrays of the .npz format: `x` mapped from a file in `folder`, labels and splits, `num_nodes`."""
        import pyarrow as pa

        items: dict[str, list[Any]] = {name: [] for name in self._items}
        rows, names = 0, tuple[str, ...]()
        try:
            with (folder / "x.bin").open("wb") as file:
                for piece in self._pieces():
                    columns = dict(zip(piece.schema.names, piece.columns, strict=True))
                    self._check_ids(columns[self._id], rows)
                    for name, parts in items.items():
                        parts.append(columns[name])
                    if self.features.columns:
                        x, names = self._stack(columns, first=rows == 0)
                        file.write(np.ascontiguousarray(x).data)
                    rows += piece.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise self._unreadable(error) from error
        whole = {name: pa.chunked_array(parts).combine_chunks() for name, parts in items.items()}
        arrays: dict[str, Any] = {"num_nodes": rows}
        arrays |= read_items(UserTable(self.path, whole, self._header), self._options)
        if names:
            shape = (rows, len(names))
            arrays |= {"x": np.memmap(folder / "x.bin", np.float32, "r", shape=shape), "x_names": names}
        return arrays

    def _stack(self, columns: dict[str, Any], *, first: bool) -> tuple[Any, tuple[str, ...]]:
        import pyarrow as pa

        for name in self.features.columns:
            kind = columns[name].type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
                raise DatasetError(
                    f"column '{name}' of {self.path.name} is text, and --memory reads numbers; encode it, or leave it "
                    f"out with --drop {name}"
                )
        table = UserTable(self.path, {name: columns[name] for name in self.features.columns}, self._header)
        return stack_features(table, self._notes if first else [])

    def _check_ids(self, column: Any, first: int) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = read_ids(column, self.features)
        if not pc.all(pc.equal(ids, pa.array(np.arange(first, first + len(ids))).cast(pa.string()))).as_py():
            raise DatasetError(
                f"{self.path.name} has other ids than 0, 1, 2, ... in this order, which --memory needs; number the "
                "nodes so, or leave --memory out"
            )

    def _pieces(self) -> Iterator[Any]:
        for file in list_files(self.path):
            for piece in self._pieces_of(file):
                yield piece.rename_columns([name.strip() for name in piece.schema.names])

    def _pieces_of(self, file: Path) -> Iterator[Any]:
        from pyarrow import csv, parquet

        if ending(file) == ".parquet":
            with parquet.ParquetFile(file) as table:
                yield from table.iter_batches(ROWS)
            return
        form, texts = sniff_text(file, header=self._options.header, notes=[]), id_names(self._options, "id")
        with csv.open_csv(file, *csv_options(form, texts)) as pieces:
            yield from pieces

    def _unreadable(self, error: Exception) -> DatasetError:
        return DatasetError(f"{self.path.name} cannot be read piece by piece ({one_line(error)[:200]})")
