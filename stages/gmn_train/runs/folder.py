"""A run's folder: what it was told, what it measured, and its checkpoints. Every file is replaced in one step."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
from filelock import Timeout

from gmn_pipeline.console.config import load_config
from gmn_pipeline.disk.lock import release_lock, take_lock
from gmn_pipeline.errors import TrainError
from gmn_pipeline.store.manifest import digest_of
from gmn_train.runs.events import FILE, encode_events, has_tensorboard
from gmn_train.settings.train_config import TrainConfig


class RunFolder:
    """config.toml, metrics.jsonl, summary.json, checkpoints/ and tensorboard/ of one run."""

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
        with _writing(self.path):
            try:
                lock = take_lock(self.path)
            except Timeout:
                raise TrainError(
                    f"another process is training {self.path}; wait for it to end, or choose another --run-dir"
                ) from None
        try:
            yield
        finally:
            release_lock(lock)

    def create(self, config: TrainConfig) -> None:
        import tomli_w

        with _writing(self.path):
            (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)
            for stale in ("metrics.jsonl", "summary.json", FILE, self.last, self.best):
                (self.path / stale).unlink(missing_ok=True)
        self._replace(self.path / "config.toml", tomli_w.dumps(config_table(config)).encode())

    def config(self) -> TrainConfig:
        """The settings the run was made with."""
        file = self.path / "config.toml"
        if not file.exists():
            raise TrainError(f"{self.path} is not a run folder: it has no config.toml; make one with gmn-train run")
        return load_config(TrainConfig, file)

    def append_metrics(self, row: dict[str, Any]) -> None:
        with _writing(self.path):
            with (self.path / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            if has_tensorboard():
                events = self.path / FILE
                events.parent.mkdir(exist_ok=True)
                with events.open("ab") as stream:
                    stream.write(encode_events([row], self._started, header=stream.tell() == 0))

    def metrics(self) -> list[dict[str, Any]]:
        """The rows so far; a last line cut off by a kill is left out."""
        file = self.path / "metrics.jsonl"
        rows = []
        for line in file.read_text().splitlines() if file.exists() else []:
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return rows

    def keep_metrics_before(self, epoch: int) -> None:
        """Drop the rows of epochs that will be run again."""
        kept = [row for row in self.metrics() if row["epoch"] < epoch]
        self._replace(self.path / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in kept).encode())
        if has_tensorboard():
            (self.path / FILE).parent.mkdir(exist_ok=True)
            self._replace(self.path / FILE, encode_events(kept, self._started, header=True))

    @property
    def _started(self) -> float:
        return (self.path / "config.toml").stat().st_mtime

    def write_summary(self, summary: dict[str, Any]) -> None:
        self._replace(self.path / "summary.json", json.dumps(summary, indent=2).encode())

    def summary(self) -> dict[str, Any] | None:
        """What a finished run found; None while it is not finished."""
        file = self.path / "summary.json"
        if not file.exists():
            return None
        summary: dict[str, Any] = json.loads(file.read_text())
        return summary

    def save_last(self, state: dict[str, Any]) -> None:
        """Everything a resume needs; loadable with weights_only."""
        with self._aside(self.last) as aside:
            torch.save(state, aside)

    def load_last(self) -> dict[str, Any] | None:
        if not self.last.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.last, weights_only=True)
        except Exception as error:
            raise TrainError(f"{self.last} cannot be read ({error}); start anew with --force") from None
        return state

    def precision(self) -> Literal["float32", "bf16"] | None:
        """What the run computes in; None before its first checkpoint."""
        found: Literal["float32", "bf16"] | None = (self.summary() or self.load_last() or {}).get("precision")
        return found

    def save_best(self, weights: dict[str, torch.Tensor]) -> None:
        from safetensors.torch import save_file

        with self._aside(self.best) as aside:
            save_file({name: tensor.clone() for name, tensor in weights.items()}, aside)  # shared tensors are refused

    def load_best(self) -> dict[str, torch.Tensor]:
        from safetensors.torch import load_file

        if not self.best.exists():
            raise TrainError(f"{self.path} has no best checkpoint yet; go on with gmn-train resume {self.path}")
        return load_file(self.best)

    def _replace(self, file: Path, content: bytes) -> None:
        with self._aside(file) as aside:
            aside.write_bytes(content)

    @contextmanager
    def _aside(self, file: Path) -> Iterator[Path]:
        """A place to write `file` at; it is flushed to disk and renamed when whole."""
        aside = file.with_name(file.name + ".part")
        with _writing(self.path):
            try:
                yield aside
                descriptor = os.open(aside, os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)
                aside.replace(file)
            finally:
                aside.unlink(missing_ok=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn a full disk or a missing permission into one clear line; what was saved before is still there."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:  # torch raises RuntimeError when a write fails
        if isinstance(error, RuntimeError) and "write" not in str(error) and "file" not in str(error):
            raise
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise TrainError(
            f"cannot write to {path}: {reason}; the last good checkpoint is kept; make room, then gmn-train resume it"
        ) from error


def config_table(config: TrainConfig) -> dict[str, Any]:
    """The settings as TOML takes them: no None, paths as text."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if v is not None}
        return str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value

    table: dict[str, Any] = plain(asdict(config))
    return table


NOT_IN_NAME = (
    "run_dir",
    "force",
    "threads",
    "loader_threads",
    "checkpoint_seconds",
    "seed",
    "split",
    "device",
    "store",
)


def default_run_dir(config: TrainConfig, fingerprint: str) -> Path:
    """data/runs/STORE-DIGEST/seedS-splitP: the same settings on the same store have the same folder."""
    table = {k: v for k, v in config_table(config).items() if k not in NOT_IN_NAME}
    digest = digest_of({"settings": table, "store": fingerprint})[:8]
    return Path("data") / "runs" / f"{config.store.stem}-{digest}" / f"seed{config.seed}-split{config.split}"
