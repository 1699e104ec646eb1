"""Predictions in the user's words: their ids, class names, probabilities, labels and splits."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from gmn_pipeline.disk.atomic_file import write_output
from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.graph.texts import Texts
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array, FloatArray, IntArray
from gmn_train.data.labelled import LabelledData
from gmn_train.learning.metrics import predicted_classes
from gmn_train.runs.naming import check_ending

SPLITS = {TRAIN: "train", VAL: "val", TEST: "test"}


def few_columns(names: list[str], most: int = 12) -> list[str]:
    """Names for a message: all, or the first and the last where there are many classes."""
    return names if len(names) <= most else [*names[: most // 2], f"... {len(names) - most} more", *names[-most // 2 :]]


@dataclass(frozen=True)
class PredictionTable:
    """One row per item, by ascending item."""

    task: Task
    columns: dict[str, Array]
    """By name: ids, prediction, probabilities, label, split, each (rows,)."""
    scores: FloatArray
    """(rows, outputs) as the model gives them."""
    embeddings: FloatArray | None
    notes: tuple[str, ...] = ()
    """What the data has and the model does not know."""

    @classmethod
    def of(
        cls, data: LabelledData, split: int, items: IntArray, scores: FloatArray, hidden: FloatArray | None
    ) -> "PredictionTable":
        order = np.argsort(items, kind="stable")
        items, scores = items[order], scores[order]
        graph, task = data.graph, data.task
        columns = id_columns(graph, task, items) | prediction_columns(task, scores)
        if graph.y is not None:
            columns |= label_columns(task, graph.y[items])
        if graph.splits is not None and split < len(graph.splits):
            codes = graph.splits[split][items]
            columns["split"] = np.array([SPLITS.get(int(code), "") for code in codes], object)
        hidden = None if hidden is None else hidden[order]
        return cls(task, columns, scores, hidden, data.trained_on.say_unknown(graph))

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, name: str) -> Array:
        """A column, (rows,)."""
        return self.columns[name]

    def column_names(self) -> list[str]:
        return [*self.columns, *(["embedding"] if self.embeddings is not None else [])]

    def write(self, out: str | PathLike[str]) -> None:
        """Write the table by the file's ending: .parquet, .csv or .npz. Raises TrainError, WriteError."""
        out = Path(out)
        check_ending(out)
        with write_output(out) as aside:
            if out.suffix == ".npz":
                texts = {name: column.astype(str) for name, column in self.columns.items() if column.dtype == object}
                more = {} if self.embeddings is None else {"embedding": self.embeddings}
                with aside.open("wb") as file:
                    np.savez(file, **{**self.columns, **texts, "scores": self.scores, **more})  # type: ignore[arg-type]
                return
            import pyarrow as pa

            arrays = {name: pa.array(column.tolist()) for name, column in self.columns.items()}
            if self.embeddings is not None:
                arrays |= _embedding_columns(self.embeddings, out.suffix)
            table = pa.table(arrays)
            if out.suffix == ".csv":
                from pyarrow import csv

                csv.write_csv(table, aside)
            else:
                from pyarrow import parquet

                parquet.write_table(table, aside)


def _embedding_columns(embeddings: FloatArray, ending: str) -> dict[str, Any]:
    import pyarrow as pa

    if ending == ".csv":  # a cell holds one number
        return {f"embedding_{i}": pa.array(column) for i, column in enumerate(embeddings.T)}
    return {"embedding": pa.array(list(embeddings))}


def id_columns(graph: Graph, task: Task, items: IntArray) -> dict[str, Array]:
    """What the user calls each item: `id`, or `src` and `dst` for a pair."""
    if task.item == "link":
        assert graph.pairs is not None
        return {name: _names(graph.node_ids, graph.pairs[items, end]) for end, name in enumerate(("src", "dst"))}
    return {"id": _names(graph.node_ids if task.item == "node" else graph.graph_ids, items)}


def _names(ids: Texts | None, items: IntArray) -> Array:
    return items if ids is None else np.array([ids[int(item)] for item in items], object)


def prediction_columns(task: Task, scores: FloatArray) -> dict[str, Array]:
    """The predicted class by name, and each class's probability; values for a regression."""
    names = [task.class_name(number) for number in range(task.classes)]
    if task.kind == "regression":
        one = task.classes == 1 and task.class_names is None
        return {"prediction" if one else f"prediction {name}": scores[:, i] for i, name in enumerate(names)}
    if task.kind == "multilabel":
        chances, chosen = expit(scores), predicted_classes(task, scores)
        return {f"prediction {name}": chosen[:, i] for i, name in enumerate(names)} | {
            f"probability {name}": chances[:, i] for i, name in enumerate(names)
        }
    chances = (
        softmax(scores, 1) if task.kind == "multiclass" else np.stack([expit(-scores[:, 0]), expit(scores[:, 0])], 1)
    )
    predicted = _class_column(task, predicted_classes(task, scores))
    return {"prediction": predicted} | {f"probability {name}": chances[:, i] for i, name in enumerate(names)}


def label_columns(task: Task, y: Array) -> dict[str, Array]:
    """The known labels, classes by name; empty or NaN where unknown."""
    if y.ndim == 1:
        return {"label": _class_column(task, y)}
    names = [task.class_name(number) for number in range(task.classes)]
    one = task.classes == 1 and task.class_names is None
    return {"label" if one else f"label {name}": y[:, i] for i, name in enumerate(names)}


def _class_column(task: Task, numbers: Array) -> Array:
    if task.class_names is None:
        return numbers.astype(np.int64)
    names = np.array([*task.class_names, ""], object)  # -1, unknown, is the last
    return names[numbers]
