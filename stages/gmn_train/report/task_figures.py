"""How good the predictions are, drawn as each kind of task is judged."""

from collections.abc import Sequence

import numpy as np

from gmn_pipeline.types import Array, FloatArray
from gmn_train.learning.metrics import (
    binary_average_precision,
    binary_roc_auc,
    by_label,
    precision_recall_curve,
    predicted_classes,
    roc_curve,
)
from gmn_train.report.evidence import Evidence
from gmn_train.report.figures import Curve, draw_matrix, draw_rates, evenly
from gmn_train.report.svg import GRID, SERIES, drawing

VAL, TEST = SERIES[0], SERIES[1]
MOST_POINTS = 2000
"""Of a scatter plot."""
MOST_LABELS = 30
"""Of a bar chart."""
MOST_TARGETS = 8
"""Scatter plots of a regression task."""

Figures = list[tuple[str, str]]
"""Titles and SVG."""


def task_figures(name: str, evidence: Evidence) -> Figures:
    """The figures of one run; `name` tells them from another run's."""
    task = evidence.task
    parts = {part: values for part, values in evidence.parts.items() if len(values[1])}
    if task.kind == "regression":
        return _scatters(name, parts, task.classes)
    if task.kind == "multilabel":
        return [
            (f"Average precision by label, {part}", draw_labels(f"{name}: labels, {part}", values))
            for part, values in ((part, by_label(binary_average_precision, *parts[part])) for part in parts)
        ]
    figures = binary_curves(name, [(p, c, *parts[p]) for p, c in (("val", VAL), ("test", TEST)) if p in parts])
    for part, (scores, y) in reversed(parts.items()):
        svg = draw_confusion(f"{name}: confusion, {part}", predicted_classes(task, scores), y, task.classes)
        where = ", threshold 0.5" if task.kind == "binary" else ""
        figures.append((f"Confusion matrix, {part}{where}", svg))
    return figures if task.kind == "binary" else figures[-len(parts) :]


def binary_curves(name: str, series: Sequence[tuple[str | None, str, Array, Array]]) -> Figures:
    """ROC and precision-recall curves of (label, colour, scores, y), those with both classes."""
    roc, pr = [], []
    for label, colour, scores, y in series:
        known = y >= 0
        if scores.shape[1] > 1 or len(np.unique(y[known])) < 2:
            continue
        scores, y = scores[known, 0], y[known]
        area = f"{label}, area {binary_roc_auc(scores, y):.3f}" if label else None
        average = f"{label}, AP {binary_average_precision(scores, y):.3f}" if label else None
        roc.append(Curve(*roc_curve(scores, y), colour, area))
        precision, recall = precision_recall_curve(scores, y)
        ends = np.ones(len(recall), dtype=bool)  # of the points of one recall, the first and the last
        ends[1:-1] = (recall[1:-1] != recall[:-2]) | (recall[1:-1] != recall[2:])
        pr.append(Curve(recall[ends], precision[ends], colour, average))
    if not roc:
        return []
    rates = ("false positive rate", "true positive rate")
    return [
        ("ROC curve", draw_rates(f"{name}: ROC curve", *rates, roc, chance=True)),
        ("Precision and recall", draw_rates(f"{name}: precision", "recall", "precision", pr, chance=False)),
    ]


def draw_confusion(title: str, predicted: Array, y: Array, classes: int) -> str:
    """True classes by predicted ones, shaded by the share of each true class."""
    known = y >= 0
    counts = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(counts, (y[known], predicted[known]), 1)
    names = [str(i) for i in range(classes)]
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    words = {"xlabel": "predicted class", "ylabel": "true class"}
    return draw_matrix(title, counts, share, names, names, form=",", **words)


def draw_labels(title: str, values: FloatArray) -> str:
    """Average precision by label, best first; of many, the best and the worst."""
    order = np.argsort(-values, kind="stable")  # NaN last
    order = order[: int((~np.isnan(values)).sum())]
    if len(order) > MOST_LABELS:
        order = np.concatenate([order[: MOST_LABELS // 2], order[-MOST_LABELS // 2 :]])
    with drawing(title, height=max(1.6, 0.8 + 0.17 * len(order))) as canvas:
        ax = canvas.axes
        ax.barh(np.arange(len(order)), values[order], color=SERIES[0], height=0.7)
        ax.set_yticks(np.arange(len(order)), [f"label {i}" for i in order], fontsize=8)
        ax.set(xlabel="average precision", xlim=(0, 1))
        ax.invert_yaxis()
        ax.grid(False, axis="y")
    return canvas.svg


def _scatters(name: str, parts: dict[str, tuple[FloatArray, Array]], targets: int) -> Figures:
    figures = []
    for target in range(min(targets, MOST_TARGETS)):
        series = [
            (part, TEST if part == "test" else VAL, y.reshape(len(y), -1)[:, target], scores[:, target])
            for part, (scores, y) in parts.items()
        ]
        what = f"Predicted against true{f', target {target}' if targets > 1 else ''}"
        figures.append((what, draw_scatter(f"{name}: {what}", series)))
    return figures


def draw_scatter(title: str, parts: Sequence[tuple[str, str, Array, Array]]) -> str:
    """Predicted against true values; parts: (label, colour, true, predicted)."""
    with drawing(title) as canvas:
        ax = canvas.axes
        for label, colour, true, predicted in parts:
            known = np.flatnonzero(~np.isnan(true))
            kept = known[evenly(len(known), MOST_POINTS)]
            # Points are one picture inside the SVG: as shapes, thousands of them would outweigh the page.
            ax.scatter(true[kept], predicted[kept], s=9, alpha=0.5, color=colour, label=label, lw=0, rasterized=True)
        low = min(ax.get_xlim()[0], ax.get_ylim()[0])
        high = max(ax.get_xlim()[1], ax.get_ylim()[1])
        ax.plot([low, high], [low, high], "--", color=GRID, linewidth=1)
        ax.set(xlabel="true", ylabel="predicted")
        ax.legend()
    return canvas.svg
