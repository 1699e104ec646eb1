"""What both commands print with: JSON for machines, a small table for people."""

import json
from collections.abc import Sequence
from typing import Any

from rich.table import Table


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def size_text(count: float) -> str:
    """Bytes as a person reads them."""
    for limit, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.2f} {unit}"
    return f"{count:.0f} B"


def spread_text(values: Sequence[float]) -> str:
    """Mean and standard deviation."""
    from statistics import fmean, stdev

    return f"{fmean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")


def plain_table() -> Table:
    """A table with a head and no lines."""
    return Table(box=None, padding=(0, 2, 0, 0), header_style="dim")


def two_columns(title: str, rows: list[tuple[str, str]], name_style: str = "dim") -> Table:
    """A small table of names and values that folds long values instead of cutting them."""
    table = Table(title=title or None, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style=name_style, no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
