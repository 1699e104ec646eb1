"""One trial: a training run in the study's folder that is watched, and cut short where it falls behind.

Test items are never evaluated. The folder is named by the settings, so an interrupted trial continues from its
checkpoint, and the same settings are not trained twice.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from gmn_pipeline.console.config import identity
from gmn_pipeline.store.format.digests import digest_of
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_train.learning.evaluation import is_better
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.watching.display import Watcher
from gmn_train.settings.run_settings import TrainConfig
from gmn_train.train import train

if TYPE_CHECKING:
    from optuna import Trial

PACE_EPOCHS = 2
"""Epochs after which a trial's pace is judged; the first one compiles."""


class CutShortError(Exception):
    """A trial ends here; the message says why. Not a mistake, and never seen by a user."""


class OutOfTimeError(CutShortError):
    """The time for trials is over."""


class Judge(Watcher):
    """Tells the study how a trial goes, and ends it where it falls behind, is too slow, or the time is over."""

    def __init__(
        self,
        trial: "Trial | None",
        *,
        higher: bool,
        until: float,
        slowest: float = math.inf,
        spared: bool = False,
        show: Callable[[int, float], None],
        tell: Callable[[str], None],
    ) -> None:
        """trial: None for a repeat, which is not compared. until: by time.monotonic(). spared: goes to its end.

        show: is told of every epoch, counted from 1, and the best validation so far.
        """
        self.trial, self.higher, self.until, self.slowest, self.spared = trial, higher, until, slowest, spared
        self.show, self.tell = show, tell
        self.best, self.last, self.epochs = math.nan, 0, 0
        self._first_seconds: tuple[int, float] | None = None

    def start(self, header: Any) -> None:
        self.epochs = header.config.epochs

    def say(self, message: str) -> None:
        self.tell(message)

    def step(self, epoch: int, step: int, steps: int) -> None:  # noqa: ARG002
        if time.monotonic() > self.until:
            raise OutOfTimeError(f"out of time in epoch {epoch + 1}")

    def epoch(self, row: dict[str, Any], best: float, best_epoch: int) -> None:  # noqa: ARG002
        self.hear(row)
        done = row["epoch"] + 1
        self.show(done, self.best)
        if self.trial is None or self.last != done or done == self.epochs:
            return
        behind = self.trial.should_prune()  # notes its place at the rung even if it is spared
        if behind and not self.spared:
            raise CutShortError(f"behind others after epoch {done}")
        self._judge_pace(done, row["seconds"])

    def hear(self, row: dict[str, Any]) -> None:
        """A line of metrics.jsonl, of this sitting or an earlier one; the best so far is what counts."""
        if "val" not in row:
            return
        if is_better(row["val"], self.best, self.higher):
            self.best = row["val"]
        done = row["epoch"] + 1
        if done > self.last and not math.isnan(self.best):
            self.last = done
            if self.trial is not None:
                self.trial.report(self.best, done)

    def _judge_pace(self, done: int, seconds: float) -> None:
        if self._first_seconds is None:
            self._first_seconds = (done, seconds)
        first, before = self._first_seconds
        if self.spared or done - first < PACE_EPOCHS:
            return
        whole = (seconds - before) / (done - first) * self.epochs
        if whole > self.slowest:
            raise CutShortError(f"too slow: {whole:.0f} s for {self.epochs} epochs")


def trial_folder(root: Path, config: TrainConfig) -> Path:
    """Named by all that the result depends on."""
    return root / digest_of(identity(config))[:16]


def run_in(root: Path, config: TrainConfig, store: TokenStore, judge: Judge) -> dict[str, Any]:
    """Train in a folder below `root` that the settings name; returns the summary, without test.

    Raises whatever the judge and the training raise. What a resume needs stays only where it was interrupted.
    """
    folder = RunFolder(trial_folder(root, config))
    try:
        with folder.alone():
            if not folder.exists:
                folder.create(config)
            for row in folder.metrics():
                judge.hear(row)
            summary = folder.summary() or train(config, store, folder, judge, parts=("val",))
    except CutShortError:
        rmtree(folder.last.parent, ignore_errors=True)
        raise
    rmtree(folder.last.parent, ignore_errors=True)
    return summary
