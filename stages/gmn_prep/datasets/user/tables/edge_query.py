"""Tables of edges as DuckDB reads them: which columns, which ids, and all edges in order, sorted on disk."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gmn_pipeline.errors import DatasetError, one_line
from gmn_pipeline.types import IntArray
from gmn_prep.datasets.entry import DatasetOptions, Scratch
from gmn_prep.datasets.user.tables.table_columns import keep_features, take_column
from gmn_prep.datasets.user.tables.table_file import UserTable, sniff_text
from gmn_prep.datasets.user.tables.table_path import ending, list_files

BATCH = 1 << 20
WHOLE = "0|[1-9][0-9]{0,17}"
"""Ids that are numbers, as text."""


@dataclass(frozen=True)
class EdgeFacts:
    """What one pass over a table of edges tells."""

    rows: int
    loops: int
    most: int
    """The largest id."""


class EdgeQuery:
    """Edges of one table, or of several files as one. Use as a context manager. Raises DatasetError."""

    def __init__(
        self, path: Path, options: DatasetOptions, scratch: Scratch, notes: list[str], nodes: UserTable | None = None
    ) -> None:
        """nodes: names of columns of the table of nodes; those that are no features are taken away."""
        try:
            import duckdb
        except ImportError:
            raise DatasetError('--memory needs DuckDB; install it with pip install "gmn-pipeline[large]"') from None
        self.path, self._fault = path, duckdb.Error
        scratch.folder.mkdir(parents=True, exist_ok=True)
        self._connection = duckdb.connect(config={
            "memory_limit": f"{scratch.sort_bytes >> 20}MiB", "threads": scratch.threads,
            "temp_directory": str(scratch.folder / "sort"), "preserve_insertion_order": False,
        })  # fmt: skip
        self._connection.execute("SET enable_progress_bar = false")
        self._edges = self._select_ends(options, notes, nodes)

    def _select_ends(self, options: DatasetOptions, notes: list[str], nodes: UserTable | None) -> str:
        """A query of src and dst as BIGINT; NULL where an id is no whole number."""
        files = list_files(self.path)
        names = ", ".join(f"'{_escape(str(file))}'" for file in files)
        if ending(self.path) == ".parquet":
            source, header = f"read_parquet([{names}])", True
        else:
            form = sniff_text(files[0], header=options.header, notes=notes)
            columns = ", ".join(f"'{_escape(name)}': 'VARCHAR'" for name in form.names)
            source = (
                f"read_csv([{names}], delim='{_escape(form.separator)}', header={form.header}, skip={form.skip}, "
                f"columns={{{columns}}}, auto_detect=false)"
            )
            header = form.header
        types = {row[0]: row[1] for row in self._rows(f"DESCRIBE SELECT * FROM {source}")}
        table = UserTable(self.path, {name: name for name in types}, header)
        ends = [take_column(table, role, getattr(options, role)) for role in ("src", "dst")]
        keep_features([table] if nodes is None else [nodes, table], options.features, options.drop)
        if table.columns:
            raise DatasetError(
                f"{self.path.name} has edge features ({', '.join(table.columns)}), which --memory does not keep; leave "
                f"them out with --drop {','.join(table.columns)}"
            )
        return f"SELECT {_number(ends[0], types)} AS src, {_number(ends[1], types)} AS dst FROM {source}"

    def facts(self) -> EdgeFacts:
        """Count rows and self-loops, find the largest id; ids that are no numbers from 0 are refused."""
        ((rows, loops, least, most, strange),) = self._rows(
            "SELECT count(*), count(*) FILTER (src = dst), least(min(src), min(dst)), greatest(max(src), max(dst)), "
            f"count(*) FILTER (src IS NULL OR dst IS NULL) FROM ({self._edges})"
        )
        if not rows:
            raise DatasetError(f"{self.path.name} has no rows; there is nothing to do")
        if strange or least < 0:
            raise DatasetError(
                f"{self.path.name} has {strange or 'some'} rows whose ids are not whole numbers from 0, which --memory "
                "needs; number the nodes, or leave --memory out"
            )
        return EdgeFacts(rows, loops, most)

    def refuse_names(self, most: int) -> None:
        """DatasetError where most numbers up to the largest id are missing: they are names rather than numbers."""
        if most + 1 > 1000 + 2 * self.distinct():
            raise DatasetError(
                f"{self.path.name} names nodes up to {most:,}, and most of those numbers are missing: names rather "
                "than numbers, which --memory needs; number the nodes from 0"
            )

    def distinct(self) -> int:
        """How many different ids there are."""
        ((count,),) = self._rows(
            f"WITH e AS ({self._edges}) "
            "SELECT count(DISTINCT id) FROM (SELECT src AS id FROM e UNION ALL SELECT dst FROM e)"
        )
        return int(count)

    def sorted_slots(self, most: int) -> Iterator[tuple[IntArray, IntArray]]:
        """All edges but self-loops, both ways, by (source, target): batches of sources and marked targets.

        A marked target is 2 * target, plus 1 where the edge was given the other way round.
        """
        kind = "INTEGER" if 2 * most + 1 < 2**31 else "BIGINT"
        query = (
            f"WITH e AS ({self._edges}) SELECT src::{kind} AS a, (2 * dst)::{kind} AS b FROM e WHERE src <> dst "
            f"UNION ALL SELECT dst::{kind}, (2 * src + 1)::{kind} FROM e WHERE src <> dst ORDER BY a, b"
        )
        try:
            for batch in self._connection.sql(query).to_arrow_reader(BATCH):
                yield batch.column(0).to_numpy(), batch.column(1).to_numpy()
        except self._fault as error:
            raise self._error(error) from error

    def _rows(self, query: str) -> list[Any]:
        try:
            return list(self._connection.sql(query).fetchall())
        except self._fault as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> DatasetError:
        return DatasetError(f"{self.path.name} cannot be read or sorted ({one_line(error)[:200]})")

    def __enter__(self) -> "EdgeQuery":
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()


def _number(name: str, types: dict[str, str]) -> str:
    column = '"' + name.replace('"', '""') + '"'
    if types[name] == "VARCHAR":
        return f"CASE WHEN regexp_full_match(trim({column}), '{WHOLE}') THEN trim({column})::BIGINT END"
    whole = types[name] in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
    return f"{column}::BIGINT" if whole else "NULL::BIGINT"


def _escape(text: str) -> str:
    return text.replace("'", "''")
