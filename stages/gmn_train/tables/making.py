"""The story of `gmn-train table`: specs in; runs, Markdown and pages out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gmn_pipeline.disk.atomic_file import write_text
from gmn_pipeline.errors import ConfigError
from gmn_train.tables.leave_one_out import LeaveOneOutSpec, leave_one_out_markdown, read_leave_one_out
from gmn_train.tables.plots import draw_plot, save_plot
from gmn_train.tables.running import RowResult, Say, collect, make_stores, plan_jobs, run_jobs
from gmn_train.tables.spec import TableSpec, read_spec
from gmn_train.tables.writing import to_markdown, to_page

INTRO = """# Results

Every result in these tables was measured by `gmn-train table`, which wrote this page: what was not run says so. Test
results are those of the epoch with the best validation, mean ± standard deviation over runs. Seconds per epoch include
evaluation and are the least of the row's runs; memory is a whole process's peak. The `paper` column is what Behrouz &
Hashemi (2024) report for a model of that name. Public figures are told with whose they are, over how many runs, and
whether they are from their source (first-hand) or from a later paper that cites it.
"""
KEPT = re.compile(r"<!-- kept -->\n.*?<!-- end kept -->\n", re.DOTALL)
"""What a page may hold below its first paragraph, written by hand: it stays when the page is written again."""


@dataclass(frozen=True)
class MadeTable:
    """One table, as it stands."""

    spec: TableSpec
    results: list[RowResult]
    markdown: Path
    page: Path
    leave_one_out: LeaveOneOutSpec | None = None

    @property
    def open_runs(self) -> int:
        return sum(result.pending + len(result.failures) for result in self.results)


def make_tables(
    files: Sequence[Path], out: Path, *, workers: int, threads: int | None, only_write: bool, say: Say
) -> list[MadeTable]:
    """Run every spec's rows and write its table.md and table.html below `out`. only_write: run nothing."""
    if workers < 1:
        raise ConfigError(f"--jobs is {workers}; it must be at least 1")
    specs = [_read(file) for file in files]
    tables = []
    for file, (spec, leave_one_out) in zip(files, specs, strict=True):
        folder = out / file.stem
        if not only_write:
            make_stores(spec.row, say)
        jobs = plan_jobs(spec)
        failed = {}
        if not only_write:
            say(f"{spec.title}: {len(jobs)} runs")
            failed = run_jobs(jobs, workers=workers, threads=threads, say=say)
        results = collect(spec, jobs, failed)
        has_plot = save_plot(spec, results, folder / "plot.png")
        page = write_text(folder / "table.html", to_page(spec, results, draw_plot(spec, results)))
        table = MadeTable(spec, results, folder / "table.md", page, leave_one_out)
        write_text(table.markdown, _section(table, "plot.png" if has_plot else None))
        tables.append(table)
    return tables


def _read(file: Path) -> tuple[TableSpec, LeaveOneOutSpec | None]:
    leave_one_out = read_leave_one_out(file)
    return (leave_one_out.table if leave_one_out else read_spec(file)), leave_one_out


def _section(table: MadeTable, image: str | None) -> str:
    if table.leave_one_out is not None:
        return leave_one_out_markdown(table.leave_one_out, table.results)
    return to_markdown(table.spec, table.results, image)


def write_results(tables: Sequence[MadeTable], file: Path) -> Path:
    """All tables in one Markdown page, with their plots in images/ beside it. Text between the marks stays."""
    kept = KEPT.search(file.read_text(encoding="utf-8")) if file.exists() else None
    sections = [INTRO, *([kept[0]] if kept else [])]
    for table in tables:
        name = f"images/{table.markdown.parent.name}.png"
        has_plot = save_plot(table.spec, table.results, file.parent / name)
        sections.append(_section(table, name if has_plot else None))
    return write_text(file, "\n".join(sections))
