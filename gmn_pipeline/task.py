"""What is to be predicted, and how it is judged."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

from gmn_pipeline.errors import GraphError, nearest
from gmn_pipeline.metrics import METRICS, Kind, metrics_of
from gmn_pipeline.names import check_names

Item = Literal["node", "graph", "link"]

KEYS = {"item": "level"}
"""What a field is called in stores, runs and users' files, where that is not its name."""

MOST_CLASSES = 1_000_000


@dataclass(frozen=True)
class Task:
    """A prediction task. An *item* is what carries a label: a node, a graph, or a pair of nodes."""

    __pydantic_config__: ClassVar[Any] = {"alias_generator": lambda name: KEYS.get(name, name)}
    item: Item
    """node, graph or link."""
    kind: Kind
    """multiclass, binary, multilabel or regression."""
    classes: int
    """Number of classes; of labels for multilabel; of targets for regression. Binary has 2."""
    metric: str
    """How a model is judged: a name of `metrics.METRICS`."""
    class_weighted: bool = False
    """Whether the loss weights classes by their rarity (PATTERN, PascalVOC-SP and COCO-SP do)."""

    class_names: tuple[str, ...] | None = None
    """What the user calls each class, label or target; None where that is its number."""

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("item", self.item, get_args(Item)),
            ("kind", self.kind, get_args(Kind)),
        ):
            if value not in allowed:
                raise GraphError(f"task {name} is '{value}'; allowed: {', '.join(allowed)}{nearest(value, allowed)}")
        metrics = metrics_of(self.kind)
        if self.metric not in metrics:
            raise GraphError(
                f"metric '{self.metric}' does not fit a {self.kind} task; allowed: {', '.join(metrics)}"
                f"{nearest(self.metric, metrics)}"
            )
        least = 2 if self.kind in ("multiclass", "binary") else 1
        if self.classes < least or (self.kind == "binary" and self.classes != 2):
            raise GraphError(f"a {self.kind} task cannot have {self.classes} classes; it needs at least {least}")
        if self.classes > MOST_CLASSES:
            raise GraphError(f"{self.classes:,} classes are more than a model can tell apart; at most {MOST_CLASSES:,}")
        if self.class_names is not None:
            object.__setattr__(self, "class_names", tuple(self.class_names))
            check_names("class names", self.class_names, self.classes)

    @classmethod
    def of(cls, item: Item, kind: Kind, classes: int, metric: str | None = None, **options: Any) -> "Task":
        """A task with its kind's default metric unless one is named."""
        if metric is None:
            metric = next(iter(metrics_of(kind)), "")
        return cls(item, kind, classes, metric, **options)

    @property
    def higher_is_better(self) -> bool:
        return METRICS[self.metric].higher_is_better

    @property
    def outputs(self) -> int:
        """Width of a model's last layer: one logit for a binary task, one value per class or target otherwise."""
        return 1 if self.kind == "binary" else self.classes

    def class_name(self, number: int) -> str:
        """What the user calls a class; its number where that has no name."""
        return str(number) if self.class_names is None else self.class_names[number]

    def as_dict(self) -> dict[str, Any]:
        """All fields, by their keys; names only where there are some."""
        fields = {name: value for name, value in asdict(self).items() if name != "class_names" or value is not None}
        return {KEYS.get(name, name): value for name, value in fields.items()}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Task":
        """A task from what `as_dict` made of it."""
        return cls(
            **{
                name: fields[KEYS.get(name, name)]
                for name in cls.__dataclass_fields__
                if KEYS.get(name, name) in fields
            }
        )
