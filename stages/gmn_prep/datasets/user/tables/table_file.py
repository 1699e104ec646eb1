"""The user's own tables: CSV with any separator, with a header or without, Parquet, or several files as one."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gmn_pipeline.errors import DatasetError, one_line
from gmn_prep.datasets.user.tables.table_path import TABLE_SUFFIXES, ending, list_files, say_missing
from gmn_prep.datasets.user.tables.text_file import open_text
from gmn_prep.datasets.user.tables.written_values import read_written

SEPARATORS = (",", "\t", ";", "|", " ")
NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
MOST_ROWS, ROWS_PER_BYTE = 1_000_000, 8
"""Of a Parquet file; rows of different edges take more room than that."""


@dataclass
class UserTable:
    """Columns by name, as one Arrow array each; those that were used are taken out."""

    path: Path
    columns: dict[str, Any]
    header: bool = True
    """False: columns are named by their place, from 0."""
    dropped: tuple[str, ...] = ()
    """Columns that the user does not want, already taken out."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0


def read_tables(
    path: Path, texts: tuple[str, ...], *, header: bool, notes: list[str], drop: tuple[str, ...] = ()
) -> UserTable:
    """One table of all files that `path` stands for.

    texts: names of columns to read as text whatever they look like, in lower case: ids. drop: columns to leave out.
    Raises DatasetError.
    """
    import pyarrow as pa

    files = list_files(path)
    tables = [_read(file, texts, header, notes) for file in files]
    if not tables:
        raise DatasetError(f"no file is called {path}; check the pattern")
    names = tables[0][0].column_names
    for file, (table, _) in zip(files, tables, strict=True):
        if sorted(table.column_names) != sorted(names):
            raise DatasetError(
                f"{file.name} has columns {', '.join(table.column_names)}, {files[0].name} has {', '.join(names)}; "
                "files of one table need the same"
            )
    try:
        whole = pa.concat_tables([table.select(names) for table, _ in tables], promote_options="permissive")
    except pa.ArrowInvalid as error:
        raise DatasetError(f"{path.name}: columns differ in type between files ({one_line(error)})") from error
    columns = {name: whole.column(name).combine_chunks() for name in names if name not in drop}
    place = files[0] if len(files) == 1 else path
    for name, column in columns.items():
        if name.lower() not in texts:
            columns[name] = read_written(name, column, place.name, notes)
    return UserTable(place, columns, tables[0][1], tuple(name for name in names if name in drop))


def _read(path: Path, texts: tuple[str, ...], header: bool, notes: list[str]) -> tuple[Any, bool]:
    import pyarrow as pa

    if ending(path) not in TABLE_SUFFIXES or not path.is_file():
        raise DatasetError(f"{path} is no table ({', '.join(TABLE_SUFFIXES)})" if path.exists() else say_missing(path))
    try:
        if ending(path) == ".parquet":
            table, headed = _read_parquet(path), True
            table.validate(full=True)
        else:
            table, headed = _read_text(path, texts, header, notes)
        names = [name.strip() for name in table.column_names]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if "invalid utf8" in str(error).lower():
            raise DatasetError(f"{path.name} is not UTF-8 text; save it as UTF-8") from error
        raise DatasetError(f"{path.name} cannot be read as a table ({one_line(error)})") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path.name} is not UTF-8 text; save it as UTF-8") from error
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DatasetError(f"{path.name} has two columns named '{twice[0]}'; rename one")
    table = table.rename_columns(names)
    odd = [name for name in names if pa.types.is_binary(table.schema.field(name).type)]
    if odd:
        raise DatasetError(f"column '{odd[0]}' of {path.name} is not UTF-8 text; save the file as UTF-8")
    return table, headed


def _read_parquet(path: Path) -> Any:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        rows = file.metadata.num_rows
        if rows > MOST_ROWS + ROWS_PER_BYTE * path.stat().st_size:
            raise DatasetError(
                f"{path.name} holds {rows:,} rows in {path.stat().st_size:,} bytes: all the same, no graph"
            )
        return file.read()


@dataclass(frozen=True)
class TextForm:
    """How a text file is a table."""

    separator: str
    skip: int
    """Lines of comments before it."""
    header: bool
    names: list[str]
    decimal_comma: bool


def sniff_text(path: Path, *, header: bool, notes: list[str]) -> TextForm:
    """Find separator, comments and names from the first lines of a file."""
    with open_text(path) as file:
        start = file.read(1 << 16)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DatasetError(f"{path.name} is UTF-16 text; save it as UTF-8")
    lines = start.decode("utf-8-sig", errors="replace").splitlines()
    skip = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)  # comments, as SNAP writes them
    first = lines[skip] if lines else ""
    separator = "\t" if ending(path).startswith(".tsv") else max(SEPARATORS, key=first.count)
    fields = [field.strip().strip('"') for field in first.split(separator)]
    if header and fields and all(NUMBER.fullmatch(field) for field in fields):
        header = False
        notes.append(f"{path.name} begins with numbers: read without a header, columns are 0, 1, 2, ...")
    names = fields if header else [str(place) for place in range(len(fields))]
    sample = "\n".join(lines[skip + 1 : skip + 50])
    comma = separator == ";" and bool(re.search(r"\d,\d", sample)) and not re.search(r"\d\.\d", sample)
    return TextForm(separator, skip, header, names, comma)


def csv_options(form: TextForm, texts: tuple[str, ...]) -> tuple[Any, Any, Any]:
    """How pyarrow reads a text of this form, whole or in pieces. texts: columns, in lower case, that stay text."""
    import pyarrow as pa
    from pyarrow import csv

    return (
        csv.ReadOptions(skip_rows=form.skip, column_names=None if form.header else form.names),
        csv.ParseOptions(delimiter=form.separator),
        csv.ConvertOptions(
            column_types={name: pa.string() for name in form.names if name.lower() in texts},
            decimal_point="," if form.decimal_comma else ".",
        ),
    )


def _read_text(path: Path, texts: tuple[str, ...], header: bool, notes: list[str]) -> tuple[Any, bool]:
    from pyarrow import csv

    form = sniff_text(path, header=header, notes=notes)
    with open_text(path) as file:
        table = csv.read_csv(file, *csv_options(form, texts))
    return table, form.header
