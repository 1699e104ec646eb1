"""What the user's labels mean: classes, several labels each, or quantities. Said in a note where it is a guess."""

from dataclasses import dataclass, field

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.types import Array

FEW = 20
"""Different whole numbers that are classes even if written as 1.0, or if most items have their own."""


UNKNOWN = np.iinfo(np.int64).min
"""Stands for an empty field among whole numbers."""


@dataclass
class Labels:
    """Labels as `Graph` has them."""

    y: Array
    kind: str
    classes: int
    names: tuple[str, ...] | None = None
    notes: list[str] = field(default_factory=list)


def read_labels(y: Array, kind: str | None, classes: int | None, *, pairs: bool = False) -> Labels | None:
    """Labels of items, (items,) or (items, columns): numbers, booleans or text. None where all are unknown.

    kind, classes: as given, or None. pairs: labels of a link task. Unknown are NaN, empty text, and
    -1 beside classes from 0.
    """
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2:
        return _read_several(y, kind, classes)
    if y.dtype.kind == "U":
        return _read_text(y, kind, classes)
    if y.dtype.kind == "b" and kind in (None, "multiclass", "binary"):
        return Labels(y.astype(np.int64), kind or ("binary" if pairs else "multiclass"), 2, ("False", "True"))
    if y.dtype.kind in "bu":
        y = y.astype(np.int64 if y.max(initial=0) <= np.iinfo(np.int64).max else np.float64)
    if y.dtype.kind == "f":
        y = y.astype(np.float64)
    known = ~np.isnan(y) if y.dtype.kind == "f" else y != UNKNOWN
    if not known.any():
        return None
    if np.isinf(y[known]).any():
        raise DatasetError("labels hold infinite values; leave them empty where unknown")
    values = np.unique(y[known])
    notes: list[str] = []
    if kind is None:
        kind = _guess_kind(y, values, int(known.sum()), notes)
    if kind in ("regression", "multilabel"):
        return Labels(np.where(known, y, np.nan), kind, 1, notes=notes)
    if np.any(values != np.floor(values)):
        raise DatasetError(
            f"labels of a {kind} task must be whole numbers; found {_few(values)}; or give --task regression"
        )
    if y.dtype.kind == "f" and np.abs(values).max() > 2**53:
        raise DatasetError(
            f"labels hold {values[-1]:g}, too large for classes; give --task regression if they are quantities"
        )
    if pairs and kind == "multiclass" and values.size <= 2:
        kind = "binary"
    return _read_classes(np.where(known, y, 0).astype(np.int64), known, kind, classes, notes)


def _guess_kind(y: Array, values: Array, known: int, notes: list[str]) -> str:
    whole = bool(np.all(values == np.floor(values)))
    if not whole:
        return "regression"
    if y.dtype.kind == "f":
        # Tables with missing values turn 0, 1, 2 into 0.0, 1.0, 2.0.
        dense = values.tolist() == list(range(values.size)) and 5 * values.size <= known < y.size
        kind, other = ("multiclass", "regression") if values.size <= FEW or dense else ("regression", "multiclass")
        words = {"multiclass": "classes", "regression": "quantities"}[kind]
        notes.append(f"labels are whole numbers ({_few(values)}): read as {words}; --task {other} changes that")
        return kind
    if values.size > FEW and values.size > known / 2:
        notes.append(
            f"labels are {values.size:,} different numbers for {known:,} items: read as a regression; "
            "--task multiclass changes that"
        )
        return "regression"
    if values.size > FEW:
        notes.append(f"labels are {values.size:,} whole numbers: read as classes; --task regression changes that")
    return "multiclass"


def _read_classes(y: Array, known: Array, kind: str, classes: int | None, notes: list[str]) -> Labels:
    """Whole numbers as classes counted from 0."""
    values = np.unique(y[known])
    if values[0] == -1 and values.tolist() != [-1, 1] and values.size > 1:
        unknown = known & (y == -1)
        known, values = known & ~unknown, values[1:]
        notes.append(f"label -1 is read as unknown: {np.count_nonzero(unknown):,} of {y.size:,} items")
    elif values.tolist() == [-1]:
        known, values = np.zeros_like(known), values[1:]
        if classes is None:
            raise DatasetError("all labels are -1, which means unknown; leave them out")
    two = kind == "binary"
    count = 2 if two else classes if classes is not None else values.size
    plain = values.size == 0 or (values[0] >= 0 and values[-1] < count)
    if plain or values.size > count:  # more than --classes allows: the graph's own check names them
        codes, names = y, None
    else:
        codes, names = np.searchsorted(values, y), tuple(str(value) for value in values)
        names = (*names, *(f"class {i}" for i in range(len(names), count)))
        notes.append(f"labels {_few(values)} are read as classes 0 to {values.size - 1}, in this order")
    if count < 2:
        raise DatasetError(
            f"all known labels are {values[0]}: there is nothing to tell apart; give --classes if more exist"
        )
    return Labels(np.where(known, codes, -1), kind, count, names, notes)


def _read_text(y: Array, kind: str | None, classes: int | None) -> Labels | None:
    known = y != ""
    if not known.any():
        return None
    if kind not in (None, "multiclass", "binary"):
        raise DatasetError(
            f"labels are text, as '{y[known][0]}', but a {kind} task needs numbers; choose another column with --label"
        )
    values, codes = np.unique(y[known], return_inverse=True)
    if values.size > FEW and values.size > known.sum() / 2:
        raise DatasetError(
            f"labels are {values.size:,} different texts for {known.sum():,} items: names rather than classes; "
            "choose another column with --label"
        )
    if values.size < 2 and classes is None:
        raise DatasetError(f"all known labels are '{values[0]}': there is nothing to tell apart")
    names = tuple(str(value) for value in values)
    if classes is not None:
        names = (*names, *(f"class {i}" for i in range(len(names), classes)))
    out = np.full(y.size, -1, dtype=np.int64)
    out[known] = codes
    return Labels(out, kind or "multiclass", len(names), names)


def _read_several(y: Array, kind: str | None, classes: int | None) -> Labels | None:
    """Several columns: labels of their own if they are 0 and 1, else targets of a regression."""
    if y.dtype.kind == "U":
        raise DatasetError("several columns of text labels; give one column of classes, or columns of 0 and 1")
    columns, notes = y.shape[1], []
    unknown = np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, dtype=bool)
    if unknown.all():
        return None
    if kind in ("multiclass", "binary"):
        if not np.all(np.isin(y, (0, 1)) & (y.sum(axis=1) == 1)[:, None]):
            raise DatasetError(f"labels have {columns} columns; as a {kind} task each row needs exactly one 1")
        return Labels(y.argmax(axis=1), kind, columns)
    values = np.unique(y[~unknown])
    if kind is None and np.all(np.isin(values, (0, 1))) and np.all(y.sum(axis=1) == 1):
        notes.append("each row of labels has one 1: read as classes; --task multilabel changes that")
        return Labels(y.argmax(axis=1), "multiclass", columns, notes=notes)
    if kind is None:
        kind = "multilabel" if np.all(np.isin(values, (-1, 0, 1))) and 1 in values else "regression"
        if y.dtype.kind == "f" and kind == "multilabel":
            notes.append("labels are 0 and 1: read as several labels each; --task regression changes that")
        if y.dtype.kind in "iu" and kind == "regression":
            notes.append("labels are several columns of numbers: read as targets of a regression")
    if kind == "multilabel":
        y = y.astype(np.float32)
        y[y == -1] = np.nan
    return Labels(y, kind, columns if classes is None else classes, notes=notes)


def _few(values: Array, most: int = 5) -> str:
    """Values for a message: the first, and that there are more."""
    shown = [f"{value:g}" if values.dtype.kind == "f" else str(value) for value in values[:most].tolist()]
    return ", ".join(shown) + (f", ... {values[-1]:g}" if values.size > most else "")
