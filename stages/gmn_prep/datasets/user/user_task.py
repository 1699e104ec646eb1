"""The task of a user's own data: as given, otherwise inferred from the labels."""

from dataclasses import dataclass
from typing import Any, get_args

from gmn_pipeline.errors import DatasetError, nearest
from gmn_pipeline.metrics import Kind
from gmn_pipeline.task import KEYS, Item
from gmn_prep.datasets.entry import DatasetOptions


@dataclass(frozen=True)
class AskedTask:
    """What a file or the command line says about the task; None where they are silent."""

    item: str | None = None
    kind: str | None = None
    metric: str | None = None
    classes: int | None = None
    class_weighted: bool = False

    def __bool__(self) -> bool:
        return any((self.item, self.kind, self.metric, self.classes, self.class_weighted))


def read_asked_task(options: DatasetOptions, file: dict[str, Any]) -> AskedTask:
    """The command line's word on each point, else the file's (`level`, `kind`, `metric`, `classes`)."""
    item, kind = parse_task(options.task)
    classes = file.get("classes") if options.classes is None else options.classes
    return AskedTask(
        item=item or file.get(KEYS["item"]),
        kind=kind or file.get("kind"),
        metric=options.metric or file.get("metric"),
        classes=None if classes is None else int(classes),
        class_weighted=bool(file.get("class_weighted", False)),
    )


def choose_item(items: int, nodes: int, graphs: int | None, *, pairs: bool, asked: AskedTask) -> str:
    """What carries a label: as given, otherwise pairs if there are any, graphs if labels are as many, or nodes."""
    if asked.item is not None:
        return asked.item
    return "link" if pairs else "graph" if graphs is not None and items == graphs != nodes else "node"


def parse_task(task: str | None) -> tuple[str | None, str | None]:
    """Item and kind of `graph-regression`; either may be left out."""
    parts: dict[str, str] = {}
    items, kinds = get_args(Item), get_args(Kind)
    for word in task.split("-") if task else ():
        place = "item" if word in items else "kind" if word in kinds else None
        if place is None or place in parts:
            raise DatasetError(
                f"task '{task}' is not known; allowed: an item ({', '.join(items)}), "
                f"a kind ({', '.join(kinds)}), or both as graph-regression{nearest(word, items + kinds)}"
            )
        parts[place] = word
    return parts.get("item"), parts.get("kind")
