"""`python -m tests.benchmarks [NAME ...]`: one table of ratios, each against the peer in the same run.

--markdown FILE also puts the tables between the marks of a page, docs/benchmarks.md, and all ratios against other
projects into one table at its head; a benchmark that was not run keeps its lines there.
"""

import argparse
import math
import os
import platform
import re
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.timing import Row

COLUMNS = ("work", "ours", "s", "peer", "s ", "ratio")
HEAD = ["| work | ours | s | peer | s | ratio |", "|---|---|---:|---|---:|---:|"]
PEERS = ("torch", "scipy", "zarr", "PyG", "GCNConv", "GPSConv", "mamba", "two mambapy")
"""How a peer's cell begins where it is another project, and not another way of ours."""


def main(names: list[str], page: Path | None) -> None:
    files = Path(__file__).parent.glob("*/bench_*.py")
    rooms = {file.stem.removeprefix("bench_"): file.parent.name for file in sorted(files, key=lambda file: file.stem)}
    unknown = set(names) - set(rooms)
    if unknown:
        sys.exit(f"error: no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(rooms)}")
    console = Console()
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in ("s", "s ", "ratio") else "left", overflow="fold")
    notes = []
    for name in names or rooms:
        console.print(f"running {name} ...", style="dim")
        module = import_module(f"tests.benchmarks.{rooms[name]}.bench_{name}")
        cells = [cells_of(row) for row in map(Row._make, module.rows())]
        lines = module.lines() if hasattr(module, "lines") else []
        for row in cells:
            table.add_row(*row)
        notes += lines
        if page is not None and (cells or lines):
            write_section(page, name, cells, lines)
    if page is not None:
        write_summary(page)
        write_between(page, "machine", [machine_line()])
    console.print(table)
    for line in notes:
        console.print(f"- {line}")


def machine_line() -> str:
    """The processor that the figures are from."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = (
        f"{facts.get('model name', platform.processor())}, family {facts.get('cpu family')}, model {facts.get('model')}"
    )
    return f"Machine of the last run: {name}, {len(os.sched_getaffinity(0))} cores, no GPU; torch {version('torch')}."


def cells_of(row: Row) -> tuple[str, ...]:
    ratio = row.peer_seconds / row.ours_seconds
    peer = "" if math.isnan(row.peer_seconds) else f"{row.peer_seconds:.3g}"
    return row.work, row.ours, f"{row.ours_seconds:.3g}", row.peer, peer, "" if math.isnan(ratio) else f"{ratio:.1f}x"


def write_section(page: Path, name: str, cells: list[tuple[str, ...]], lines: list[str]) -> None:
    """A benchmark's command, its table and its further lines."""
    table = [*HEAD, *["| " + " | ".join(row) + " |" for row in cells]] if cells else []
    further = [f"- {line}" for line in lines]
    write_between(page, name, [f"`python -m tests.benchmarks {name}`", "", *table, "", *further])


def write_summary(page: Path) -> None:
    """All ratios against other projects that the page's sections have, in one table."""
    text = re.sub(r"<!-- peers -->.*?<!-- end peers -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    rows = [line for line in text.splitlines() if re.search(r"x \|$", line)]
    against = [row for row in rows if row.split(" | ")[3].startswith(PEERS)]
    write_between(page, "peers", [*HEAD, *against])


def write_between(page: Path, name: str, lines: list[str]) -> None:
    """Replace what stands between <!-- NAME --> and <!-- end NAME -->."""
    text = page.read_text(encoding="utf-8")
    marks = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end {name} -->)", re.DOTALL)
    if not marks.search(text):
        sys.exit(f"error: {page} has no marks <!-- {name} --> and <!-- end {name} -->")
    body = "\n".join(lines).strip()
    page.write_text(marks.sub(lambda m: m[1] + body + m[2], text), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks to run; all unless given")
    parser.add_argument("--markdown", type=Path, help="a page with marks to put the tables into")
    arguments = parser.parse_args()
    main(arguments.names, arguments.markdown)
