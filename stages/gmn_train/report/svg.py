"""From matplotlib to SVG inside a page: text and lines take the page's colours, so one figure serves light and dark."""

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

TEXT, GRID = "#010101", "#020202"
"""Stand-ins for the page's colours, replaced in the finished SVG; drawn by nothing else."""
SERIES = ("#2f7fd6", "#da761b", "#2a9d6a", "#b05ac0", "#d64f45", "#1f9fb3", "#98862b", "#8f6f5c")
"""Of runs and groups; each has at least 3:1 contrast on both backgrounds."""
WIDTH, HEIGHT = 4.7, 3.0
"""Inches: a card on a phone is about this wide, so text is never scaled down by much."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small, selectable, in the page's font
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": TEXT,
    "ytick.labelcolor": TEXT,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


class Canvas:
    """A figure being drawn; `svg` holds it when the `with` block is over."""

    def __init__(self, width: float, height: float) -> None:
        self.figure = Figure(figsize=(width, height), layout="constrained")
        self.axes: Axes = self.figure.subplots()
        self.svg = ""


@contextmanager
def drawing(title: str, *, width: float = WIDTH, height: float = HEIGHT, grid: bool = True) -> Iterator[Canvas]:
    """A canvas in the page's style; `title` is what a screen reader says."""
    with mpl.rc_context({**_STYLE, "axes.grid": grid}):
        canvas = Canvas(width, height)
        yield canvas
        buffer = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": title}):  # the same figure, the same bytes
            canvas.figure.savefig(buffer, format="svg", transparent=True, dpi=144, metadata={"Date": None})
        canvas.svg = inline_svg(buffer.getvalue(), title)


def inline_svg(text: str, title: str) -> str:
    """A standalone SVG as one to stand among others in a page: no prolog, no fixed size, ids of its own."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = text.replace(TEXT, "currentColor").replace(GRID, "var(--grid)")
    head, body = text.split(">", 1)
    head = re.sub(r' (width|height|version|xmlns)="[^"]*"', "", head)
    used = set(re.findall(r'(?:href="|url\()#([\w-]+)', body))
    own = "f" + hashlib.sha256((title + body).encode()).hexdigest()[:8]

    def rename(match: re.Match[str]) -> str:
        return f' id="{own}-{match[1]}"' if match[1] in used else ""

    body = re.sub(r' id="([^"]*)"', rename, body)
    body = re.sub(r'(href="|url\()#', rf"\1#{own}-", body)
    body = re.sub(r"\s*\n\s*", "\n", body)
    return f'{head} role="img" aria-label="{escape(title)}">{body}'
