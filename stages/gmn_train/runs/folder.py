"""A run's folder: its settings, measurements and checkpoints. Every file is replaced in one step."""

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import Timeout

from gmn_pipeline.console.config import Layer, as_table, identity, load_config, read_toml
from gmn_pipeline.disk.atomic_file import write_aside, write_bytes
from gmn_pipeline.disk.lock import release_lock, take_lock
from gmn_pipeline.errors import ConfigError, TrainError
from gmn_pipeline.store.format.digests import digest_of
from gmn_train.runs.naming import RUNS
from gmn_train.runs.store_place import locate_store
from gmn_train.runs.watching.events import FILE, encode_events, has_tensorboard
from gmn_train.settings.run_settings import TrainConfig

FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)

NUMBER = (int, float)
SUMMARY: dict[str, Any] = {
    "metric": str, "val": NUMBER, "test": (*NUMBER, type(None)), "best_epoch": int, "epochs": int, "seconds": NUMBER,
    "seconds_per_epoch": NUMBER, "waiting_share": NUMBER, "peak_memory_bytes": int, "parameters": int, "model": str,
    "mode": str, "seed": int, "split": int, "store": dict, "tokens": dict,
}  # fmt: skip
"""What every summary.json holds. It has no test score where a search asked for none."""


class RunFolder:
    """config.toml, data.json, metrics.jsonl, summary.json, checkpoints/ and tensorboard/ of one run."""

    writes = True
    """Whether this process is the one that writes here."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    @property
    def last(self) -> Path:
        return self.path / "checkpoints" / "last.pt"

    @property
    def best(self) -> Path:
        return self.path / "checkpoints" / "best.safetensors"

    @property
    def exists(self) -> bool:
        return (self.path / "config.toml").exists()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only process that trains here; TrainError where another does. The lock ends with the process."""
        with self.writing():
            try:
                lock = take_lock(self.path)
            except Timeout:
                raise TrainError(
                    f"another process is training {self.path}; wait for it to end, or choose another --run-dir"
                ) from None
        try:
            for left in (*self.path.glob("*.part"), *self.path.glob("*/*.part")):  # by a process that was killed
                left.unlink(missing_ok=True)
            yield
        finally:
            release_lock(lock)

    def create(self, config: TrainConfig) -> None:
        """Begin a run here; what another run has left is removed first."""
        with self.writing():
            self.last.parent.mkdir(parents=True, exist_ok=True)
            stale = ("config.toml", "data.json", "metrics.jsonl", "summary.json", "controls.json", FILE)
            for file in (*(self.path / name for name in stale), self.last, self.best):
                file.unlink(missing_ok=True)
            self._write_config(config)

    def extend(self, config: TrainConfig) -> None:
        """Plan a run of more epochs; what is done stays. In this order a kill in between leaves the run as it was."""
        with self.writing():
            (self.path / "summary.json").unlink(missing_ok=True)
            self._write_config(config)

    def _write_config(self, config: TrainConfig) -> None:
        import tomli_w

        write_bytes(self.path / "config.toml", tomli_w.dumps(as_table(config)).encode())

    def config(self) -> TrainConfig:
        """The settings the run was made with."""
        file = self.path / "config.toml"
        if not file.exists():
            raise TrainError(f"{self.path} is not a run folder: it has no config.toml; make one with gmn-train run")
        try:
            config = load_config(TrainConfig, Layer(str(file), read_toml(file)))
        except ConfigError as error:
            raise TrainError(f"{file} is not a run's settings: {error}") from None
        if lacking := config.unresolved:
            raise TrainError(f"{file} lacks {lacking[0]}; start the run again with gmn-train run --force")
        store = locate_store(config.store, config.fingerprint, self.path)
        return config if store == config.store else replace(config, store=store)

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        with self.writing():
            with (self.path / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            if has_tensorboard():
                events = self.path / FILE
                events.parent.mkdir(exist_ok=True)
                with events.open("ab") as stream:
                    stream.write(encode_events([dict(row)], self._started, header=stream.tell() == 0))

    def metrics(self) -> list[dict[str, Any]]:
        """The rows so far; a last line cut off by a kill is left out."""
        file = self.path / "metrics.jsonl"
        rows = []
        for line in file.read_bytes().splitlines() if file.exists() else []:
            try:
                row = json.loads(line)
            except ValueError:
                break
            whole = isinstance(row, dict) and all(isinstance(value, NUMBER) for value in row.values())
            if not whole or not isinstance(row.get("epoch"), int):
                raise TrainError(f"{file} holds a line that is not an epoch; remove it, or start again with --force")
            rows.append(row)
        return rows

    def keep_metrics_before(self, epoch: int) -> None:
        """Drop the rows of epochs that will be run again."""
        kept = [row for row in self.metrics() if row["epoch"] < epoch]
        with self.writing():
            write_bytes(self.path / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in kept).encode())
            if has_tensorboard():
                (self.path / FILE).parent.mkdir(exist_ok=True)
                write_bytes(self.path / FILE, encode_events(kept, self._started, header=True))

    @property
    def _started(self) -> float:
        return (self.path / "config.toml").stat().st_mtime

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        with self.writing():
            write_bytes(self.path / "summary.json", json.dumps(summary, indent=2).encode())

    def summary(self) -> dict[str, Any] | None:
        """The results of a finished run; None while it is not finished."""
        file = self.path / "summary.json"
        if not file.exists():
            return None
        try:
            summary = json.loads(file.read_bytes())
        except (ValueError, OSError) as error:
            raise TrainError(f"{file} cannot be read ({error}); remove it and resume the run") from None
        if not _is_summary(summary):
            raise TrainError(f"{file} is not a run's summary; remove it and resume the run")
        return dict(summary)

    @contextmanager
    def replacing(self, file: Path) -> Iterator[Path]:
        """A place to write one of the folder's files at; it takes its place when whole."""
        with self.writing(), write_aside(file) as aside:
            yield aside

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn a full disk or a missing permission into one clear line; what was saved before is still there."""
        from safetensors import SafetensorError

        try:
            yield
        except (OSError, RuntimeError, SafetensorError) as error:  # torch raises RuntimeError when a write fails
            reason = getattr(error, "strerror", None) or _torch_reason(self.path, error)
            forbidden = getattr(error, "errno", None) in FORBIDDEN
            what = "allow it" if forbidden else "make room"
            kept = f"the last good checkpoint is kept; {what}, then continue with gmn-train resume {self.path}"
            remedy = kept if self.exists else f"{what}, or choose another --run-dir"
            raise TrainError(f"cannot write to {self.path}: {reason}; {remedy}") from error


def _torch_reason(path: Path, error: Exception) -> str:
    """Why a write failed. torch does not say; where the disk has no room for a file, that is why."""
    room = os.statvfs(path if path.exists() else path.parent)
    return os.strerror(errno.ENOSPC) if room.f_bavail * room.f_frsize < 1 << 20 else str(error).splitlines()[0]


def default_run_dir(config: TrainConfig) -> Path:
    """data/runs/STORE-MODEL-DIGEST/seedS-splitP: the same settings on the same store have the same folder.

    A run that an earlier version made, without the model in the name, is found in its place.
    """
    digest = digest_of(identity(config, without=("seed", "split")))[:8]
    last = f"seed{config.seed}-split{config.split}"
    before = RUNS / f"{config.store.stem}-{digest}"
    named = RUNS / f"{config.store.stem}-{config.model.name}-{digest}"
    return (before if before.is_dir() else named) / last


def _is_summary(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and all(name in document and isinstance(document[name], kind) for name, kind in SUMMARY.items())
        and {"name", "fingerprint"} <= set(document["store"])
        and {"m", "M", "s", "walk"} <= set(document["tokens"])
    )
