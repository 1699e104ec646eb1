"""What a model was trained on: its task, the names of its columns and their scaling. New data is converted to match.

A column of float features, or a target, is standardised by the mean and deviation of the training items, unless it
already is of order one, or holds zeros and ones only. A column of mostly zeros keeps its zeros: zero means absent, as
in counts of words.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.console.config import adapter_of
from gmn_pipeline.disk.atomic_file import write_bytes
from gmn_pipeline.errors import GraphError, TrainError
from gmn_pipeline.graph import Graph
from gmn_pipeline.names import match_columns
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array, FloatArray, IntArray

FILE = "data.json"
"""In the run's folder."""
LARGE, SMALL_SPREAD = 10.0, 0.1
"""Columns below the one and spread by more than the other are left as they are."""
MOSTLY = 0.5
"""Share of zeros from which a column is one of mostly zeros."""
ENOUGH = 30
"""Other values that tell such a column's own scale; with fewer, all of them together do."""


@dataclass(frozen=True)
class Columns:
    """Features of nodes or edges, or targets: what their columns are, and how they are scaled."""

    count: int
    names: tuple[str, ...] | None = None
    categories: tuple[int, ...] | None = None
    mean: tuple[float, ...] | None = None
    """By column, taken away before dividing by `scale`; None where values are left as they are."""
    scale: tuple[float, ...] | None = None

    def apply(self, values: Array) -> Array:
        """Values (rows, count) as the model takes them."""
        if self.mean is None or self.scale is None or self.categories is not None:
            return values
        return ((values.astype(np.float64) - self.mean) / self.scale).astype(np.float32)

    def invert(self, values: FloatArray) -> FloatArray:
        """What the model gives, in the units of the data."""
        if self.mean is None or self.scale is None:
            return values
        return (values.astype(np.float64) * self.scale + self.mean).astype(np.float32)

    def choose(self, names: tuple[str, ...] | None, count: int, what: str) -> IntArray | None:
        """Which of a graph's columns serve, (count,), -1 for zeros; None where they are the same in the same order.

        Raises TrainError where they cannot be matched.
        """
        if self.names is not None and names is not None:
            try:
                index, _ = match_columns(self.names, names)
            except GraphError as error:
                raise TrainError(f"{what}: {error}") from None
            return None if names == self.names else index
        if count != self.count:
            raise TrainError(f"the data has {count} columns of {what}, and the model was trained on {self.count}")
        return None


def pick_columns(values: Array, index: IntArray | None) -> Array:
    """Columns `index` of values, zeros where it is -1; all of them where it is None."""
    if index is None:
        return values
    picked = values[:, np.maximum(index, 0)]
    picked[:, index < 0] = 0
    return picked


def measure_scaling(values: Array) -> tuple[tuple[float, ...], tuple[float, ...]] | tuple[None, None]:
    """(mean, scale) by column of (rows, columns), NaN left out; (None, None) where no column needs any."""
    kept = np.where(np.isfinite(values), values, np.nan).astype(np.float64)
    mean, scale = np.zeros(kept.shape[1]), np.ones(kept.shape[1])
    sparse: list[int] = []
    for column in range(kept.shape[1]):
        known = kept[~np.isnan(kept[:, column]), column]
        if len(known) == 0 or np.isin(known, (0.0, 1.0)).all():
            continue
        if np.mean(known == 0) >= MOSTLY:
            sparse.append(column)
            continue
        spread = float(known.std())
        if np.abs(known).max() <= LARGE and spread >= SMALL_SPREAD:
            continue
        mean[column] = known.mean()
        scale[column] = spread if spread > 1e-12 * max(1.0, abs(mean[column])) else 1.0
    scale[sparse] = _sizes_of_others(kept[:, sparse])
    if not mean.any() and (scale == 1).all():
        return None, None
    return tuple(mean.tolist()), tuple(scale.tolist())


def _sizes_of_others(values: FloatArray) -> FloatArray:
    """By column of mostly zeros, what makes the others of order one: their root mean square, or 1 where they are."""
    there = np.nan_to_num(values)
    counts, squares = np.count_nonzero(there, axis=0), (there**2).sum(0)
    together = np.sqrt(squares.sum() / max(counts.sum(), 1))
    size = np.where(counts >= ENOUGH, np.sqrt(squares / np.maximum(counts, 1)), together)
    return np.where((size >= SMALL_SPREAD) & (size <= LARGE), 1.0, size)


@dataclass(frozen=True)
class TrainedOn:
    """See the module."""

    task: Task
    x: Columns | None
    edge_attr: Columns | None
    y: Columns | None = None
    """Targets of a regression."""

    @classmethod
    def measure(cls, graph: Graph, train: IntArray, *, features: bool, targets: bool) -> "TrainedOn":
        """Of a graph and its training items. features, targets: whether to standardise."""
        task = graph.task
        assert task is not None
        rows = _training_nodes(graph, task, train)
        x = edge = y = None
        if graph.x is not None:
            scaling = measure_scaling(graph.x[rows]) if features and graph.x_categories is None else (None, None)
            x = Columns(graph.x.shape[1], graph.x_names, graph.x_categories, *scaling)
        if graph.edge_attr is not None:
            wanted = features and graph.edge_categories is None
            scaling = measure_scaling(graph.edge_attr[np.isin(graph.slot_sources, rows)]) if wanted else (None, None)
            edge = Columns(graph.edge_attr.shape[1], graph.edge_names, graph.edge_categories, *scaling)
        if task.kind == "regression" and graph.y is not None:
            scaling = _target_scaling(graph.y[train]) if targets else (None, None)
            y = Columns(task.classes, task.class_names, None, *scaling)
        return cls(task, x, edge, y)

    def adopt(self, graph: Graph) -> Graph:
        """A graph whose task is the model's: its labels in the model's coding, or none where it has no such labels."""
        theirs, y, splits = graph.task, graph.y, graph.splits
        if theirs is None or (theirs.item, theirs.kind) != (self.task.item, self.task.kind) or y is None:
            y = splits = None
        elif theirs.class_names != self.task.class_names:
            y = _recode(y, theirs, self.task)
        if self.task.item == "link" and graph.pairs is None:
            raise TrainError("the model predicts links, and pairs are missing in the data; give them with --pairs FILE")
        if self.task.item == "graph" and graph.graph_ptr is None:
            graph = graph.replace(graph_ptr=np.array([0, graph.num_nodes]))
        pairs = graph.pairs if self.task.item == "link" else None
        return graph.replace(task=self.task, y=y, splits=splits, pairs=pairs)

    def say_unknown(self, graph: Graph) -> tuple[str, ...]:
        """Notes on columns of a graph that the model was not trained on, and does not read."""
        notes = []
        for what, ours, names in (("", self.x, graph.x_names), ("edge ", self.edge_attr, graph.edge_names)):
            if ours is not None and ours.names is not None and names is not None:
                _, unknown = match_columns(ours.names, names)
                if unknown:
                    shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
                    notes.append(f"{what}columns that the model was not trained on are not read: {shown}")
        return tuple(notes)

    def save(self, folder: Path) -> None:
        write_bytes(folder / FILE, adapter_of(TrainedOn).dump_json(self, indent=1, by_alias=True))

    @classmethod
    def load(cls, folder: Path) -> "TrainedOn":
        """TrainError where the file is missing or damaged."""
        from pydantic import ValidationError

        try:
            loaded: TrainedOn = adapter_of(TrainedOn).validate_json((folder / FILE).read_bytes())
        except (OSError, ValidationError, GraphError) as error:
            reason = str(error).splitlines()[0]
            raise TrainError(f"{folder / FILE} cannot be read ({reason}); train the run again with --force") from None
        return loaded


def _training_nodes(graph: Graph, task: Task, train: IntArray) -> IntArray:
    if task.item == "node":
        return train
    if task.item == "graph" and graph.graph_ptr is not None:
        graph_of = np.repeat(np.arange(graph.num_graphs), np.diff(graph.graph_ptr))
        return np.flatnonzero(np.isin(graph_of, train))
    return np.arange(graph.num_nodes)


def _target_scaling(y: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Targets are always standardised: a loss is then of order one, whatever their unit."""
    known = np.where(np.isfinite(y), y, np.nan).astype(np.float64)
    present = ~np.isnan(known).all(0)
    mean, spread = np.zeros(y.shape[1]), np.ones(y.shape[1])
    mean[present], spread[present] = np.nanmean(known[:, present], 0), np.nanstd(known[:, present], 0)
    spread[spread <= 1e-12 * np.maximum(1.0, np.abs(mean))] = 1.0
    return tuple(mean.tolist()), tuple(spread.tolist())


def _recode(y: Array, theirs: Task, ours: Task) -> Array:
    """Labels in the coding of another task's classes; TrainError where a class is unknown."""
    if theirs.class_names is None or ours.class_names is None:
        raise TrainError("only one of the data and the model has names of classes; both need them, or neither")
    unknown = [name for name in theirs.class_names if name not in ours.class_names]
    if unknown:
        raise TrainError(
            f"class '{unknown[0]}' is unknown to the model, which was trained on {', '.join(ours.class_names)}; to "
            "predict only, tokenize the data without its labels (--drop)"
        )
    place: list[Any] = [ours.class_names.index(name) for name in theirs.class_names]
    if y.ndim == 1:
        return np.where(y >= 0, np.array(place)[np.maximum(y, 0)], -1)
    recoded = np.full((len(y), ours.classes), np.nan, y.dtype)
    recoded[:, place] = y
    return recoded
