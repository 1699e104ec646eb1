"""The metrics of the benchmarks, from scikit-learn. A new one is a function here and a line in `metrics.METRICS`."""

import warnings
from collections.abc import Callable

import numpy as np
from sklearn import metrics as sk

from gmn_pipeline.metrics import metric_code
from gmn_pipeline.tables import load_code
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array


def evaluate_metric(task: Task, scores: Array, y: Array) -> float:
    """The task's metric for scores (items, outputs), as the model gives them, and labels; NaN where undefined.

    Items without a label are left out.
    """
    if task.kind in ("multiclass", "binary"):
        known = y >= 0
        scores, y = scores[known], y[known]
    if len(y) == 0:
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns where a metric is undefined; we return NaN
        return float(load_code(metric_code(task.metric))(task, scores, y))


def predicted_classes(task: Task, scores: Array) -> Array:
    """(items,) the most likely class; for multilabel (items, labels) of 0 and 1."""
    if task.kind == "multiclass":
        return scores.argmax(1)
    return (scores[:, 0] > 0).astype(np.int64) if task.kind == "binary" else (scores > 0).astype(np.int64)


def accuracy(task: Task, scores: Array, y: Array) -> float:
    return sk.accuracy_score(y, predicted_classes(task, scores))


def weighted_accuracy(task: Task, scores: Array, y: Array) -> float:
    """Mean of the classes' own accuracies, the measure of PATTERN's benchmark."""
    return sk.balanced_accuracy_score(y, predicted_classes(task, scores))


def macro_f1(task: Task, scores: Array, y: Array) -> float:
    if task.kind == "multilabel":
        return _mean_over_labels(lambda t, s: sk.f1_score(t, s > 0), scores, y)
    return sk.f1_score(y, predicted_classes(task, scores), average="macro", zero_division=0)


def roc_auc(task: Task, scores: Array, y: Array) -> float:
    if task.kind == "multilabel":
        return _mean_over_labels(sk.roc_auc_score, scores, y)
    return sk.roc_auc_score(y, scores[:, 0]) if len(np.unique(y)) == 2 else float("nan")


def average_precision(task: Task, scores: Array, y: Array) -> float:
    if task.kind == "multilabel":
        return _mean_over_labels(sk.average_precision_score, scores, y)
    return sk.average_precision_score(y, scores[:, 0]) if (y == 1).any() else float("nan")


def mae(_task: Task, scores: Array, y: Array) -> float:
    known = ~np.isnan(y)
    return float(np.abs(scores - y)[known].mean()) if known.any() else float("nan")


def _mean_over_labels(metric: Callable[[Array, Array], float], scores: Array, y: Array) -> float:
    """Unweighted mean over the labels that have both a 0 and a 1 among their known items, as ogb's evaluator does."""
    values = []
    for label in range(y.shape[1]):
        known = ~np.isnan(y[:, label])
        if len(np.unique(y[known, label])) == 2:
            values.append(metric(y[known, label], scores[known, label]))
    return float(np.mean(values)) if values else float("nan")
