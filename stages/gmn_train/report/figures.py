"""The figures that every task shares. Each function draws one and returns it as inline SVG."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.ticker import MaxNLocator

from gmn_pipeline.types import Array, FloatArray
from gmn_train.report.facts import thin_points
from gmn_train.report.svg import GRID, HEIGHT, SERIES, TEXT, drawing

MOST_NUMBERS = 12
"""Rows and columns up to which a matrix shows its numbers."""


@dataclass(frozen=True)
class Curve:
    """One curve of a figure."""

    x: Array
    y: Array
    colour: str
    label: str | None = None
    style: str = "-"
    mark: int | None = None
    """The x to mark with a dot."""


def draw_curves(title: str, ylabel: str, lines: Sequence[Curve]) -> str:
    """Values by epoch; the best epoch of each run is a dot."""
    with drawing(title) as canvas:
        ax = canvas.axes
        for line in lines:
            kept = thin_points(line.y)
            single = "o" if len(kept) == 1 else ""
            ax.plot(line.x[kept], line.y[kept], line.style, color=line.colour, label=line.label, marker=single)
            at = np.flatnonzero(line.x == line.mark)
            if len(at):
                ax.plot(line.x[at], line.y[at], "o", color=line.colour, markersize=6, markeredgecolor=TEXT)
        values = np.concatenate([line.y for line in lines]) if lines else np.zeros(0)
        if len(values) and values.min() > 0 and values.max() > 20 * values.min():
            ax.set_yscale("log")
        ax.set(xlabel="epoch", ylabel=ylabel)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if any(line.label for line in lines):
            ax.legend()
    return canvas.svg


def draw_rates(title: str, xlabel: str, ylabel: str, lines: Sequence[Curve], *, chance: bool) -> str:
    """Curves in the unit square: ROC with its line of chance, or precision and recall."""
    with drawing(title) as canvas:
        ax = canvas.axes
        if chance:
            ax.plot([0, 1], [0, 1], "--", color=GRID, linewidth=1)
        for line in lines:
            kept = evenly(len(line.x), 400)
            ax.plot(line.x[kept], line.y[kept], line.style, color=line.colour, label=line.label)
        ax.set(xlabel=xlabel, ylabel=ylabel, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        if any(line.label for line in lines):
            ax.legend(loc="lower right" if chance else "best")
    return canvas.svg


def evenly(count: int, most: int) -> Array:
    """At most `most` indices below `count`, evenly spaced, both ends among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def draw_matrix(
    title: str,
    values: Array,
    shade: FloatArray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    xlabel: str,
    ylabel: str,
    form: str,
) -> str:
    """Numbers in cells shaded by `shade`, of the same shape, -1..1: blue above zero, orange below."""
    cells = np.empty((*values.shape, 4))
    cells[..., :3] = np.where(shade[..., None] >= 0, to_rgb(SERIES[0]), to_rgb(SERIES[1]))
    cells[..., 3] = 0.04 + 0.6 * np.abs(shade)  # never opaque: the page's text colour must stay readable on it
    numbers = max(values.shape) <= MOST_NUMBERS
    with drawing(title, grid=False, height=HEIGHT if numbers else 1.4 * HEIGHT) as canvas:
        ax = canvas.axes
        ax.imshow(cells, interpolation="none", aspect="auto")
        ax.set(xlabel=xlabel, ylabel=ylabel)
        if len(rows) <= MOST_NUMBERS:
            ax.set_yticks(range(len(rows)), rows)
        if len(columns) <= MOST_NUMBERS:
            ax.set_xticks(range(len(columns)), columns)
        if numbers:
            for (i, j), value in np.ndenumerate(values):
                ax.text(j, i, format(value, form), ha="center", va="center")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    return canvas.svg


def draw_levels(title: str, series: Sequence[tuple[str, FloatArray]]) -> str:
    """Mean Δ by token level, (colour, (m+1,)) beside each other."""
    with drawing(title) as canvas:
        ax = canvas.axes
        width = 0.76 / max(len(series), 1)
        for number, (colour, values) in enumerate(series):
            at = np.arange(len(values)) + (number - (len(series) - 1) / 2) * width
            bars = ax.bar(at, values, 0.92 * width, color=colour)
            if len(series) == 1:
                ax.bar_label(bars, fmt="%.4f", fontsize=8)
        most = max((len(values) for _, values in series), default=1)
        ax.set_xticks(range(most), ["0 (itself)", *map(str, range(1, most))])
        ax.set(xlabel="token level (walk length)", ylabel="mean Δ")
        ax.grid(False, axis="x")
    return canvas.svg


def draw_deviations(title: str, deltas: FloatArray, scans: Sequence[str]) -> str:
    """How far each level's Δ (token scans, m+1) lies from its scan's mean: scans differ far more than their levels."""
    share = np.round(deltas / deltas.mean(1, keepdims=True) - 1, 3) + 0.0  # no -0.0%
    shade = share / max(float(np.abs(share).max()), 0.05)  # differences under a few percent stay pale
    names = [str(level) for level in range(deltas.shape[1])]
    return draw_matrix(title, share, shade, scans, names, xlabel="token level (walk length)", ylabel="", form="+.1%")
