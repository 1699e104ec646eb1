"""The metrics of the benchmarks. A new one is a function here and a line in `metrics.METRICS`.

They have the bits of scikit-learn's. Its import takes more than a second, and every run would wait for it.
"""

import warnings
from collections.abc import Callable

import numpy as np

from gmn_pipeline.metrics import metric_code
from gmn_pipeline.tables import load_code
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array, FloatArray


def evaluate_metric(task: Task, scores: Array, y: Array) -> float:
    """The task's metric for scores (items, outputs), as the model gives them, and labels; NaN where undefined.

    Items without a label are left out.
    """
    if task.kind in ("multiclass", "binary"):
        known = y >= 0
        scores, y = scores[known], y[known]
    if len(y) == 0 or np.isnan(scores).any():
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a user's metric may warn where it is undefined
        return float(load_code(metric_code(task.metric))(task, scores, y))


def predicted_classes(task: Task, scores: Array) -> Array:
    """(items,) the most likely class; for multilabel (items, labels) of 0 and 1."""
    if task.kind == "multiclass":
        return scores.argmax(1)
    return (scores[:, 0] > 0).astype(np.int64) if task.kind == "binary" else (scores > 0).astype(np.int64)


def accuracy(task: Task, scores: Array, y: Array) -> float:
    return float((predicted_classes(task, scores) == y).mean())


def weighted_accuracy(task: Task, scores: Array, y: Array) -> float:
    """Mean of the classes' own accuracies, the measure of PATTERN's benchmark."""
    right, _, true = _counts(predicted_classes(task, scores), y)
    return float((right / true)[true > 0].mean())


def macro_f1(task: Task, scores: Array, y: Array) -> float:
    if task.kind == "multilabel":
        return _mean_over_labels(lambda s, t: float(_f1(s > 0, t)[-1]), scores, y)
    return float(_f1(predicted_classes(task, scores), y).mean())


def roc_auc(task: Task, scores: Array, y: Array) -> float:
    if task.kind == "multilabel":
        return _mean_over_labels(binary_roc_auc, scores, y)
    return binary_roc_auc(scores[:, 0], y) if len(np.unique(y)) == 2 else float("nan")


def average_precision(task: Task, scores: Array, y: Array) -> float:
    if task.kind == "multilabel":
        return _mean_over_labels(binary_average_precision, scores, y)
    return binary_average_precision(scores[:, 0], y) if (y == 1).any() else float("nan")


def mae(_task: Task, scores: Array, y: Array) -> float:
    known = ~np.isnan(y)
    return float(np.abs(scores - y)[known].mean()) if known.any() else float("nan")


def roc_curve(scores: Array, y: Array) -> tuple[FloatArray, FloatArray]:
    """False and true positive rates from (0, 0) to (1, 1) over falling thresholds, without points on a straight line.

    scores (items,), y (items,) of 0 and 1, both present.
    """
    false, true = _positives(scores, y)
    corners = np.ones(len(true), dtype=bool)
    corners[1:-1] = (np.diff(false, 2) != 0) | (np.diff(true, 2) != 0)
    false, true = (np.concatenate([[0.0], counts[corners]]) for counts in (false, true))
    return false / false[-1], true / true[-1]


def precision_recall_curve(scores: Array, y: Array) -> tuple[FloatArray, FloatArray]:
    """Precision and recall over rising thresholds. scores (items,), y (items,) of 0 and 1, with a 1."""
    false, true = _positives(scores, y)
    return (true / (true + false))[::-1], (true / true[-1])[::-1]


def binary_roc_auc(scores: Array, y: Array) -> float:
    """The area under `roc_curve`."""
    false, true = roc_curve(scores, y)
    return float(np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2))


def binary_average_precision(scores: Array, y: Array) -> float:
    """The mean of the precisions at which recall rises."""
    precision, recall = precision_recall_curve(scores, y)
    return float(max(0.0, -np.sum(np.diff(recall, append=0.0) * precision)))


def _positives(scores: Array, y: Array) -> tuple[FloatArray, FloatArray]:
    """How many items that are 0, and how many that are 1, have one of the k highest of the distinct scores."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    true = np.cumsum(y[order] == 1, dtype=np.float64)[last]
    return 1 + last - true, true


def _counts(predicted: Array, y: Array) -> tuple[Array, Array, Array]:
    """How often a class is predicted rightly, predicted, and true; of each class that occurs."""
    classes, both = np.unique(np.concatenate([y, predicted]), return_inverse=True)
    true, predictions = both[: len(y)], both[len(y) :]
    right = np.bincount(true[true == predictions], minlength=len(classes))
    return right, np.bincount(predictions, minlength=len(classes)), np.bincount(true, minlength=len(classes))


def _f1(predicted: Array, y: Array) -> FloatArray:
    """Of each class that occurs."""
    right, predictions, true = _counts(predicted, y)
    return 2.0 * right / (true + predictions)


def _mean_over_labels(metric: Callable[[Array, Array], float], scores: Array, y: Array) -> float:
    """Unweighted, as ogb's evaluator does; NaN where no label has a value."""
    values = by_label(metric, scores, y)
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float("nan")


def by_label(metric: Callable[[Array, Array], float], scores: Array, y: Array) -> FloatArray:
    """(labels,) the metric of each; NaN where its known items are all alike."""
    values = np.full(y.shape[1], np.nan)
    for label in range(y.shape[1]):
        known = ~np.isnan(y[:, label])
        if len(np.unique(y[known, label])) == 2:
            values[label] = metric(scores[known, label], y[known, label])
    return values
