"""The task of a user's own data: what was said, and otherwise what the labels look like."""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from gmn_pipeline.errors import DatasetError, nearest
from gmn_pipeline.metrics import Kind
from gmn_pipeline.task import Level, Task
from gmn_pipeline.types import Array
from gmn_prep.datasets.entry import DatasetOptions


@dataclass(frozen=True)
class Wish:
    """What a file or the command line says about the task; None where they are silent."""

    level: str | None = None
    kind: str | None = None
    metric: str | None = None
    classes: int | None = None
    class_weighted: bool = False

    def __bool__(self) -> bool:
        return any((self.level, self.kind, self.metric, self.classes, self.class_weighted))


def read_wish(options: DatasetOptions, file: dict[str, Any]) -> Wish:
    """The command line's word on each point, else the file's (`level`, `kind`, `metric`, `classes`)."""
    level, kind = parse_task(options.task)
    classes = file.get("classes") if options.classes is None else options.classes
    return Wish(
        level=level or file.get("level"),
        kind=kind or file.get("kind"),
        metric=options.metric or file.get("metric"),
        classes=None if classes is None else int(classes),
        class_weighted=bool(file.get("class_weighted", False)),
    )


def choose_task(y: Array, nodes: int, graphs: int | None, *, pairs: bool, wish: Wish) -> Task:
    """The task for labels `y`.

    graphs: how many, None for one graph. Unless said otherwise: whole numbers are classes, fractions a
    regression, several columns of whole numbers labels of their own; labels of pairs are a binary link task,
    and one label per graph is a graph task.
    """
    level = wish.level
    if level is None:
        level = "link" if pairs else "graph" if graphs is not None and len(y) == graphs != nodes else "node"
    columns = 1 if y.ndim == 1 else y.shape[1]
    kind = wish.kind
    if kind is None:
        whole = "binary" if level == "link" else "multiclass" if columns == 1 else "multilabel"
        kind = "regression" if y.dtype.kind == "f" else whole
    classes = wish.classes
    if classes is None:
        largest = np.nanmax(y, initial=1) if kind == "multiclass" else 1
        classes = {"multiclass": int(largest) + 1, "binary": 2}.get(kind, columns)
    options: dict[str, Any] = {"class_weighted": wish.class_weighted}
    return Task.of(level, kind, classes, wish.metric, **options)  # type: ignore[arg-type]


def parse_task(task: str | None) -> tuple[str | None, str | None]:
    """Level and kind of `graph-regression`; either may be left out."""
    found: dict[str, str] = {}
    levels, kinds = get_args(Level), get_args(Kind)
    for word in task.split("-") if task else ():
        place = "level" if word in levels else "kind" if word in kinds else None
        if place is None or place in found:
            raise DatasetError(
                f"task '{task}' is not known; allowed: a level ({', '.join(levels)}), "
                f"a kind ({', '.join(kinds)}), or both as graph-regression{nearest(word, levels + kinds)}"
            )
        found[place] = word
    return found.get("level"), found.get("kind")
