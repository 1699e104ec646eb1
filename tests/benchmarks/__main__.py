"""`python -m tests.benchmarks [NAME ...]`: one table of ratios, each against the peer in the same run."""

import math
import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.timing import Row


def main(names: list[str]) -> None:
    found = sorted(file.stem.removeprefix("bench_") for file in Path(__file__).parent.glob("bench_*.py"))
    unknown = set(names) - set(found)
    if unknown:
        sys.exit(f"error: no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(found)}")
    console = Console()
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column, side in (
        ("work", "left"),
        ("ours", "left"),
        ("s", "right"),
        ("peer", "left"),
        ("s ", "right"),
        ("ratio", "right"),
    ):
        table.add_column(column, justify=side, overflow="fold")  # type: ignore[arg-type]
    lines = []
    for name in names or found:
        console.print(f"running {name} ...", style="dim")
        module = import_module(f"tests.benchmarks.bench_{name}")
        for row in map(Row._make, module.rows()):
            ratio = row.peer_seconds / row.ours_seconds
            shown = "" if math.isnan(ratio) else f"{ratio:.1f}x"
            table.add_row(row.work, row.ours, f"{row.ours_seconds:.3g}", row.peer, f"{row.peer_seconds:.3g}", shown)
        lines += module.lines() if hasattr(module, "lines") else []
    console.print(table)
    for line in lines:
        console.print(f"- {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
