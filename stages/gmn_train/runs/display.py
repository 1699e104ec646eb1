"""Who follows a run: a person at a terminal or a log, a test, or a logger of the user's own."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gmn_pipeline.task import Task
from gmn_train.settings.run_settings import TrainConfig


@dataclass(frozen=True)
class RunHeader:
    """What is known of a run when it starts."""

    path: Path
    config: TrainConfig
    task: Task
    training_items: int
    parameters: int
    device: str
    first_epoch: int
    """0, or where a resumed run goes on."""


class Watcher:
    """Hears what happens in a run. By default it does nothing. An exception it raises ends the run."""

    def start(self, header: RunHeader) -> None:
        """Called once, before the first step."""

    def step(self, epoch: int, step: int, steps: int) -> None:
        """Called before each training step; `step` counts from 0 to `steps`."""

    def epoch(self, row: dict[str, Any], best: float, best_epoch: int) -> None:
        """Called after each epoch with its line of metrics.jsonl, and the best validation so far."""

    def say(self, message: str) -> None:
        """Something that the user should know."""

    def stop(self) -> None:
        """Called once at the end, however the run ends."""


Show = Literal["live", "lines", "nothing"]
LOG_LINES = 10
"""Lines per run in a log."""


class Display(Watcher):
    """Follows one run. Everything goes to stderr."""

    def __init__(self, show: Show) -> None:
        self.show = show
        self._bars: Any = None
        self._task: Any = None
        self._epochs, self._items, self._begun, self._first = 0, 0, 0.0, 0

    @classmethod
    def for_person(cls, *, silent: bool) -> "Display":
        return cls("nothing" if silent else "live" if sys.stderr.isatty() else "lines")

    def start(self, header: RunHeader) -> None:
        config, task = header.config, header.task
        assert config.epochs is not None
        self._epochs, self._items, self._first = config.epochs, header.training_items, header.first_epoch
        self._begun = time.monotonic()
        self.say(
            f"{config.store.name}: {task.level} {task.kind}, {self._items:,} training items, mode {config.mode}, "
            f"m={config.m} M={config.M} s={config.s}"
        )
        self.say(
            f"{header.path}: model {config.model.name}, recipe {config.recipe}, {header.parameters:,} parameters, "
            f"{header.device}"
        )
        if self.show == "live":
            self._bars, self._task = _make_bar(self._epochs)
            self._bars.update(self._task, completed=header.first_epoch)
            self._bars.start()

    def epoch(self, row: dict[str, Any], best: float, best_epoch: int) -> None:
        done = row["epoch"] + 1
        rate = self._items * (done - self._first) / max(time.monotonic() - self._begun, 1e-9)
        val = f"{row['val']:.4f}" if "val" in row else "-"
        text = f"loss {row['loss']:.4f}  val {val}  best {best:.4f} ({best_epoch + 1})  {rate:,.0f} items/s"
        if self._bars is not None:
            self._bars.update(self._task, completed=done, text=text)
        elif self.show == "lines" and (done % max(1, self._epochs // LOG_LINES) == 0 or done == self._epochs):
            self.say(f"epoch {done}/{self._epochs}  {text}")

    def say(self, message: str) -> None:
        if self._bars is not None:
            self._bars.console.print(message, markup=False, highlight=False)
        elif self.show != "nothing":
            print(message, file=sys.stderr)

    def stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _make_bar(epochs: int) -> tuple[Any, Any]:
    from rich import progress
    from rich.console import Console

    bars = progress.Progress(
        progress.TextColumn("{task.completed}/{task.total}"),
        progress.BarColumn(bar_width=12),
        progress.TextColumn("{task.fields[text]}"),
        progress.TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        refresh_per_second=4,
    )
    return bars, bars.add_task("epochs", total=epochs, text="")
