"""The metrics by name: what they judge, and where stage two computes them. `METRICS.add(...)` takes further ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from gmn_pipeline.tables import Table

Kind = Literal["multiclass", "binary", "multilabel", "regression"]


@dataclass(frozen=True)
class Metric:
    """One line of the table."""

    name: str
    title: str
    """What people call it."""
    kinds: tuple[Kind, ...]
    """The kinds of label it judges."""
    default_of: tuple[Kind, ...] = ()
    """The kinds that are judged by it unless the user says otherwise."""
    higher_is_better: bool = True
    ranks_links: bool = False
    """Whether it ranks linked pairs among others; only a link task has those."""
    code: str | Callable[..., float] = ""
    """(task, scores (items, outputs), labels) -> float; by default the function of that name in `learning.metrics`."""


METRICS = Table(
    "metric",
    (
        Metric("accuracy", "accuracy", ("multiclass", "binary"), ("multiclass",)),
        Metric("weighted_accuracy", "weighted accuracy", ("multiclass", "binary")),
        Metric("macro_f1", "macro F1", ("multiclass", "binary", "multilabel")),
        Metric("roc_auc", "ROC AUC", ("binary", "multilabel"), ("binary",)),
        Metric("average_precision", "average precision", ("binary", "multilabel"), ("multilabel",)),
        Metric("mae", "mean absolute error", ("regression",), ("regression",), higher_is_better=False),
        Metric("mrr", "MRR", ("binary",), ranks_links=True),
    ),
)


def metrics_of(kind: str) -> list[str]:
    """The metrics that judge a kind of label, its default first."""
    names = [name for name, metric in METRICS.items() if kind in metric.kinds]
    return sorted(names, key=lambda name: kind not in METRICS[name].default_of)


def metric_title(name: str) -> str:
    """What people call a metric."""
    return METRICS[name].title if name in METRICS else name


def metric_code(name: str) -> Any:
    """The function, or where it lies."""
    return METRICS[name].code or f"gmn_train.learning.metrics:{name}"
