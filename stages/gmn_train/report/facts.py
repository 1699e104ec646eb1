"""What a run's folder says: settings, epochs, and how it ended. Figures and page are made from these."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import TrainError
from gmn_pipeline.types import Array, IntArray
from gmn_train.learning.evaluation import is_better
from gmn_train.report.evidence import Evidence, gather_evidence
from gmn_train.runs.control import find_controls
from gmn_train.runs.folder import RunFolder


@dataclass(frozen=True)
class Result:
    """The row of a metric table; None where it is not known (yet)."""

    best_epoch: int | None
    """Counted from 1, as in the curves; the files of a run count from 0."""
    val: float | None
    test: float | None
    epochs: int
    seconds_per_epoch: float | None
    peak_memory_bytes: int | None = None
    parameters: int | None = None


@dataclass(frozen=True)
class RunFacts:
    """One run as the page shows it."""

    path: Path
    name: str
    settings: dict[str, Any]
    """All of them, by dotted name; paths by their last part, so that a page names no machine's folders."""
    rows: list[dict[str, Any]]
    """By epoch: epoch, loss, and val and test where they were measured."""
    summary: dict[str, Any] | None
    """None while the run is not finished."""
    evidence: Evidence | None
    missing: str | None
    """Why there is no evidence."""
    result: Result
    controls: "dict[str, dict[str, Any]]" = field(default_factory=dict)
    """Summaries of its own control, at `equal epochs` and `equal seconds`, as far as they are finished."""

    @property
    def finished(self) -> bool:
        return self.summary is not None

    @property
    def metric(self) -> str | None:
        if self.summary is not None:
            return str(self.summary["metric"])
        return None if self.evidence is None else self.evidence.task.metric

    @property
    def fingerprint(self) -> str | None:
        """Of the store the run was trained from."""
        if self.summary is not None:
            return str(self.summary["store"]["fingerprint"])
        return None if self.evidence is None else self.evidence.fingerprint


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """The run folders, each once. A folder that is not a run stands for the runs inside it."""
    folders: list[Path] = []
    for path in paths:
        inside = [] if _is_run(path) else sorted(p for p in path.glob("*") if _is_run(p))
        if not _is_run(path) and not inside:
            what = "has no config.toml" if path.is_dir() else "does not exist" if not path.exists() else "is a file"
            raise TrainError(f"{path} is not a run folder: it {what}; give a folder that gmn-train run has made")
        folders += [p for p in inside or [path] if p.resolve() not in {f.resolve() for f in folders}]
    return folders


def _is_run(path: Path) -> bool:
    return (path / "config.toml").is_file()


def short_names(paths: Sequence[Path]) -> list[str]:
    """The last parts of each path, as many as tell the runs apart; `seed0-split0` alone says too little."""
    parts = [path.resolve().parts[1:] for path in paths]
    longest = max(len(p) for p in parts)
    for count in range(1, longest + 1):
        names = ["/".join(p[-count:]) for p in parts]
        telling = count > 1 or not all(name.startswith("seed") for name in names)
        if telling and len(set(names)) == len(names):
            break
    return names


def read_run(path: Path, name: str) -> RunFacts:
    """Everything about one run; TrainError where it has measured nothing yet."""
    folder = RunFolder(path)
    config, rows, summary = folder.config(), folder.metrics(), folder.summary()
    if not rows:
        raise TrainError(
            f"{path} has no metrics yet, because no epoch is finished; continue with gmn-train resume {path}"
        )
    settings = flat_settings(asdict(config))
    evidence = gather_evidence(path, config.store, None if summary is None else summary["store"]["fingerprint"])
    known_evidence, missing = (None, evidence) if isinstance(evidence, str) else (evidence, None)
    result = result_of(rows, summary, known_evidence)
    controls = {
        which: control_summary
        for which, place in find_controls(path).items()
        if (control_summary := RunFolder(place).summary()) is not None
    }
    return RunFacts(path, name, settings, rows, summary, known_evidence, missing, result, controls)


def flat_settings(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted name."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(flat_settings(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value.name if isinstance(value, Path) else value
    return flat


def result_of(rows: list[dict[str, Any]], summary: dict[str, Any] | None, evidence: Evidence | None) -> Result:
    """From the summary of a finished run; from its rows, and what is known of the task, for another."""
    if summary is not None:
        best = summary["best_epoch"] + 1 if summary["best_epoch"] >= 0 else None
        return Result(
            best, summary["val"], summary["test"], summary["epochs"], summary["seconds_per_epoch"],
            summary["peak_memory_bytes"], summary["parameters"],
        )  # fmt: skip
    epochs = rows[-1]["epoch"] + 1
    seconds = rows[-1]["seconds"] / epochs if "seconds" in rows[-1] else None
    if evidence is None:  # without the task there is no saying whether more is better
        return Result(None, None, None, epochs, seconds)
    best_row: dict[str, Any] = {}
    for row in rows:
        if "val" in row and is_better(row["val"], best_row.get("val", math.nan), evidence.task.higher_is_better):
            best_row = row
    best = best_row["epoch"] + 1 if best_row else None
    return Result(
        best, best_row.get("val"), best_row.get("test"), epochs, seconds,
        parameters=evidence.parameters,
    )  # fmt: skip


def curve(rows: list[dict[str, Any]], key: str) -> tuple[Array, Array]:
    """(epochs from 1, values) of what was measured under `key`, values that are not finite left out."""
    pairs = [(row["epoch"] + 1, row[key]) for row in rows if key in row and math.isfinite(row[key])]
    return np.array([p[0] for p in pairs], dtype=np.int64), np.array([p[1] for p in pairs], dtype=np.float64)


def thin_points(y: Array, most: int = 400) -> IntArray:
    """At most `most` indices into a curve that keep its ends and extremes: thousands of epochs stay a small page."""
    if len(y) <= most:
        return np.arange(len(y))
    kept = [0, len(y) - 1]
    for part in np.array_split(np.arange(len(y)), (most - 2) // 2):
        kept += [int(part[y[part].argmin()]), int(part[y[part].argmax()])]
    return np.unique(kept)
