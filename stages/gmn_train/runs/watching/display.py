"""Who follows a run: a person at a terminal or a log, a test, or a logger of the user's own."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gmn_pipeline.console.streams import tell
from gmn_pipeline.task import Task
from gmn_train.runs.watching.pace import Pace, duration_text, epoch_text
from gmn_train.settings.run_settings import TrainConfig

if TYPE_CHECKING:
    from gmn_train.runs.watching.estimate import RunCost


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
    unread: tuple[str, ...] = ()
    """What the store holds and this model does not read."""

    @property
    def lines(self) -> list[str]:
        """What a person is told."""
        config, task = self.config, self.task
        lines = [
            f"{config.store.name}: {task.item} {task.kind}, {self.training_items:,} training items, mode "
            f"{config.mode}, m={config.m} M={config.M} s={config.s}",
            f"{self.path}: model {config.model.name}, recipe {config.recipe}, {self.parameters:,} parameters, "
            f"{self.device}",
        ]
        return lines + self.notes

    @property
    def notes(self) -> list[str]:
        """What a person may not expect."""
        return [f"stored, and not read by this model: {', '.join(self.unread)}"] if self.unread else []


class Watcher:
    """Hears what happens in a run. By default it does nothing. An exception it raises ends the run.

    A subclass sends what it likes elsewhere: three lines make a logger for W&B, MLflow or a database.
    """

    wants_estimate = False
    """Whether the run shall time a few steps first, and call `estimated`."""

    def start(self, header: RunHeader) -> None:
        """Called once, before the first step."""

    def estimated(self, estimate: "RunCost") -> None:
        """Called after `start`, where it was wanted and could be made."""

    def step(self, epoch: int, step: int, steps: int) -> None:
        """Called before each training step, which counts from 0, and with `steps` before the epoch's evaluation."""

    def epoch(self, row: dict[str, Any], best: float, best_epoch: int) -> None:
        """Called after each epoch with its line of metrics.jsonl, and the best validation so far."""

    def say(self, message: str) -> None:
        """Something that the user should know."""

    def stop(self) -> None:
        """Called once at the end, however the run ends."""


Show = Literal["live", "lines", "notes", "nothing"]
LOG_SECONDS = 30.0
"""Between two lines in a log."""


class Display(Watcher):
    """Follows one run: a bar on a terminal; in a log, a line for the first epoch, the last, and each half minute.

    `notes` is for a program: what one should know of the data and the run, and no progress.
    """

    def __init__(self, show: Show, *, log_seconds: float = LOG_SECONDS) -> None:
        self.show = show
        self.wants_estimate = show in ("live", "lines")
        self._log_seconds, self._said_at = log_seconds, time.monotonic()
        self._bars: Any = None
        self._task: Any = None
        self._pace = Pace(0)
        self._text = ""

    @classmethod
    def for_person(cls, *, silent: bool) -> "Display":
        return cls("nothing" if silent else "live" if sys.stderr.isatty() else "lines")

    def start(self, header: RunHeader) -> None:
        epochs = header.config.epochs
        assert epochs is not None
        self._pace, self._text = Pace(epochs, header.first_epoch), ""
        for line in header.lines if self.show != "notes" else header.notes:
            self.say(line)
        if self.show == "live":
            self._bars, self._task = _make_bar(self._pace)
            self._move(header.first_epoch, "starting")
            self._bars.start()

    def estimated(self, estimate: "RunCost") -> None:
        self._pace.expect(estimate.seconds_per_epoch)
        left = duration_text(self._pace.left() or 0.0)
        each = epoch_text(estimate.seconds_per_epoch)
        self.say(f"estimate: about {left} for {self._pace.epochs - self._pace.done} epochs of {each}")

    def step(self, epoch: int, step: int, steps: int) -> None:
        self._pace.step(step, steps)
        place = "evaluating" if step == steps else f"step {step + 1}/{steps}" if steps > 1 else ""
        if self._bars is not None:
            self._move(epoch + step / max(steps, 1) * 0.999, place)
        elif self.show == "lines" and self._is_time():
            self.say(f"epoch {epoch + 1}/{self._pace.epochs}, {place or 'under way'}{self._remaining()}")

    def epoch(self, row: dict[str, Any], best: float, best_epoch: int) -> None:
        self._pace.epoch()
        done, val = row["epoch"] + 1, f"{row['val']:.4f}" if "val" in row else "-"
        best_text = f"{best:.4f} ({best_epoch + 1})" if best_epoch >= 0 else "-"
        self._text = f"loss {row['loss']:.4f}  val {val}  best {best_text}"
        if self._bars is not None:
            self._move(done, "")
        elif self.show == "lines" and (done in (1, self._pace.epochs) or self._is_time()):
            self.say(f"epoch {done}/{self._pace.epochs}  {self._text}{self._remaining()}")

    def _move(self, completed: float, place: str) -> None:
        self._bars.update(self._task, completed=completed, text=self._text, place=place)

    def _is_time(self) -> bool:
        return time.monotonic() - self._said_at >= self._log_seconds

    def _remaining(self) -> str:
        left = self._pace.left()
        return f"  {duration_text(left)} left" if left else ""

    def say(self, message: str) -> None:
        if self._bars is not None:
            self._bars.console.print(message, markup=False, highlight=False)
        elif self.show != "nothing":
            tell(message)
        self._said_at = time.monotonic()

    def stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def time_left_column(seconds_left: Callable[[], float | None]) -> Any:
    """A bar's column; rich's own gives up where an epoch takes more than 30 s."""
    from rich import progress
    from rich.text import Text

    class TimeLeft(progress.ProgressColumn):
        max_refresh = 0.5

        def render(self, task: progress.Task) -> Text:  # noqa: ARG002
            left = seconds_left()
            return Text("" if left is None else f"{duration_text(left)} left", style="progress.remaining")

    return TimeLeft()


def _make_bar(pace: Pace) -> tuple[Any, Any]:
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    class Epochs(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            return Text(f"{min(int(task.completed) + 1, pace.epochs)}/{pace.epochs}")

    bars = progress.Progress(
        Epochs(),
        progress.BarColumn(bar_width=8),
        progress.TextColumn("{task.fields[place]}", markup=False),
        progress.TextColumn("{task.fields[text]}", markup=False),
        time_left_column(pace.left),
        console=Console(stderr=True),
        refresh_per_second=4,
    )
    return bars, bars.add_task("epochs", total=pace.epochs, text="", place="")
