"""Who follows a run: the display, a test, or a logger of the user's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Is told what happens in a run, and by default does nothing. An exception it raises ends the run."""

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
