"""A table's plot: results against a setting, or by epoch."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from gmn_pipeline.metrics import metric_title
from gmn_train.report.svg import SERIES, drawing
from gmn_train.tables.running import RowResult
from gmn_train.tables.spec import TableSpec

SIZE = (6.4, 3.8)


def draw_plot(spec: TableSpec, results: Sequence[RowResult]) -> str | None:
    """As inline SVG; None where the table asks for none or nothing is there to draw."""
    if not spec.plot or not any(result.summaries for result in results):
        return None
    with drawing(spec.title, width=SIZE[0], height=SIZE[1]) as canvas:
        _draw(canvas.axes, spec, results)
    return canvas.svg


def save_plot(spec: TableSpec, results: Sequence[RowResult], file: Path) -> bool:
    """As a picture for Markdown; returns whether there is one."""
    if not spec.plot or not any(result.summaries for result in results):
        return False
    figure = Figure(figsize=SIZE, layout="constrained", dpi=130)
    axes = figure.subplots()
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    _draw(axes, spec, results)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Software": None})
    return True


def _draw(axes: Any, spec: TableSpec, results: Sequence[RowResult]) -> None:
    done = [result for result in results if result.summaries]
    metric = metric_title(done[0].summaries[0]["metric"])
    if spec.plot == "epoch":
        for number, result in enumerate(done):
            _curve(axes, result, SERIES[number % len(SERIES)])
    else:
        for number, name in enumerate(dict.fromkeys(result.row.series for result in done)):
            _series(axes, [r for r in done if r.row.series == name], name, SERIES[number % len(SERIES)])
        axes.set_xscale("log", base=2)
        ticks = sorted({r.row.x for r in done if r.row.x is not None})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    axes.set(xlabel=spec.xlabel or spec.plot, ylabel=f"test {metric}")
    if len(done) > 1:
        axes.legend(fontsize=8, frameon=False)


def _series(axes: Any, results: Sequence[RowResult], name: str | None, colour: str) -> None:
    """Mean and standard deviation of the test metric at each x."""
    points = sorted((r for r in results if r.row.x is not None), key=lambda r: r.row.x or 0)
    values = [[s["test"] for s in r.summaries] for r in points]
    means, spreads = [fmean(v) for v in values], [stdev(v) if len(v) > 1 else 0.0 for v in values]
    axes.errorbar([r.row.x for r in points], means, spreads, color=colour, marker="o", capsize=3, label=name)


def _curve(axes: Any, result: RowResult, colour: str) -> None:
    """The test metric by epoch, averaged over runs."""
    curves = [{row["epoch"] + 1: row["test"] for row in run.metrics() if "test" in row} for run in result.runs]
    epochs = sorted(set.intersection(*[set(curve) for curve in curves]))
    axes.plot(epochs, [np.mean([c[e] for c in curves]) for e in epochs], color=colour, label=result.row.name)
