"""A table's results as Markdown and as a page, beside what others published."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

import gmn_pipeline
from gmn_pipeline.console.output import spread_text
from gmn_pipeline.metrics import metric_title
from gmn_train.tables.published import published
from gmn_train.tables.running import RowResult
from gmn_train.tables.spec import RowSpec, TableSpec

NONE = "–"


@dataclass(frozen=True)
class Cells:
    """One line of the table as text; the columns of COLUMNS."""

    name: str
    test: str
    val: str
    runs: str
    epochs: str
    seconds: str
    memory: str
    parameters: str
    paper: str
    command: str


COLUMNS = {
    "name": "model", "test": "test", "val": "validation", "runs": "runs", "epochs": "epochs", "seconds": "s/epoch",
    "memory": "peak memory", "parameters": "parameters", "paper": "paper",
}  # fmt: skip


RESULT_COLUMNS = ("test", "val", "paper")


def columns_of(spec: TableSpec) -> dict[str, str]:
    """The columns of a table: fields of `Cells`, and their headings."""
    return {key: text for key, text in COLUMNS.items() if spec.measure == "results" or key not in RESULT_COLUMNS}


def describe(result: RowResult) -> Cells:
    """A row's results as text."""
    row, summaries = result.row, result.summaries
    beside = row.name == row.model if row.paper is None else row.paper
    paper = published(row.dataset).paper.get(row.model) if beside else None
    shared = {
        "name": row.name,
        "paper": NONE if paper is None else paper,
        "command": row_command(row),
    }
    if not summaries:
        reason = f"failed: {result.failures[0]}" if result.failures else "not run"
        return Cells(test=reason, val=NONE, runs="0", epochs=NONE, seconds=NONE, memory=NONE, parameters=NONE, **shared)
    missing = result.pending + len(result.failures)
    return Cells(
        test=spread_text([s["test"] for s in summaries]),
        val=spread_text([s["val"] for s in summaries]),
        runs=f"{len(summaries)}" + (f" of {len(summaries) + missing}" if missing else ""),
        epochs=f"{max(s['epochs'] for s in summaries)}",
        seconds=f"{min(s['seconds_per_epoch'] for s in summaries):.2f}",
        memory=f"{max(s['peak_memory_bytes'] for s in summaries) / 1e9:.2f} GB",
        parameters=f"{summaries[0]['parameters']:,}",
        **shared,
    )


def row_command(row: RowSpec) -> str:
    """The command that repeats a row."""
    parts = ["gmn-train run --store", str(row.store_path), "--model", row.model]
    for one, many, text in (("--seed", "--seeds", row.seeds), ("--split", "--splits", row.splits)):
        if text != "0":
            parts += [one if text.isdigit() else many, text]
    return " ".join(parts + [part for text in row.assignments for part in ("--set", text)])


def heading(spec: TableSpec, results: Sequence[RowResult]) -> str:
    """What is measured, and the best public figure."""
    datasets = sorted({row.dataset for row in spec.row})
    if spec.measure == "cost":
        return f"Cost on {', '.join(datasets)}."
    metrics = sorted({s["metric"] for result in results for s in result.summaries})
    text = f"Test {' / '.join(metric_title(m) for m in metrics) or 'metric'} on {', '.join(datasets)}"
    best = [(name, found) for name in datasets if (found := published(name).best)]
    figures = [f"on {name} {found}" if len(datasets) > 1 else found for name, found in best]
    return f"{text}; best public figure: {'; '.join(figures)}." if figures else f"{text}."


def to_markdown(spec: TableSpec, results: Sequence[RowResult], image: str | None) -> str:
    """One section."""
    lines, columns = [describe(result) for result in results], columns_of(spec)
    text = [f"## {spec.title}", "", heading(spec, results), ""]
    text += [spec.note.strip(), ""] if spec.note else []
    text += ["| " + " | ".join(columns.values()) + " |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    text += ["| " + " | ".join(getattr(line, key) for key in columns) + " |" for line in lines]
    text += ["", f"![{spec.title}]({image})"] if image else []
    text += ["", "```", *[line.command for line in lines], "```", ""]
    return "\n".join(text)


def code_words(text: str) -> Markup:
    """Text for a page: escaped, `words` in code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def to_page(spec: TableSpec, results: Sequence[RowResult], plot: str | None) -> str:
    """The same as a self-contained page; `plot` is inline SVG."""
    environment = Environment(loader=PackageLoader("gmn_train", ""), autoescape=True, trim_blocks=True)
    return environment.get_template("tables/table.html.jinja").render(
        title=spec.title,
        heading=heading(spec, results),
        paragraphs=[code_words(text) for text in spec.note.strip().split("\n\n") if text],
        columns=columns_of(spec),
        lines=[describe(result) for result in results],
        plot=None if plot is None else Markup(plot),
        version=gmn_pipeline.__version__,
    )
