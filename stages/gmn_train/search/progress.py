"""Who follows a search: a bar on a terminal, a line for each trial in a log."""

import math
import sys
from collections.abc import Callable
from typing import Any

from gmn_pipeline.console.streams import tell
from gmn_train.runs.watching.display import Show, time_left_column
from gmn_train.runs.watching.pace import duration_text
from gmn_train.search.budget import TimeBudget


class SearchDisplay:
    """Shows trial, value, best so far, and time left."""

    def __init__(self, show: Show, budget: TimeBudget) -> None:
        self.show, self.budget = show, budget
        self.best = ""
        self._bars: Any = None
        self._task: Any = None

    @classmethod
    def for_person(cls, budget: TimeBudget, *, silent: bool) -> "SearchDisplay":
        return cls("nothing" if silent else "live" if sys.stderr.isatty() else "lines", budget)

    def say(self, message: str) -> None:
        if self._bars is not None:
            self._bars.console.print(message, markup=False, highlight=False)
        elif self.show != "nothing":
            tell(message)

    def follow(self, what: str, epochs: int) -> "Callable[[int, float], None]":
        """A trial begins; returns what to call after each epoch."""

        def after(epoch: int, value: float) -> None:
            if self._bars is not None:
                text = "" if math.isnan(value) else f"val {value:.4f}"
                self._bars.update(
                    self._task, completed=self.budget.used, what=f"{what}, epoch {epoch}/{epochs}", text=text,
                    best=self.best,
                )  # fmt: skip

        after(0, math.nan)
        return after

    def trial(self, what: str, ended: str, settings: str) -> None:
        """A trial is over: its line."""
        self.say(f"{what}  {ended}  {self.best}  {duration_text(self.budget.left())} left  {settings}")

    def __enter__(self) -> "SearchDisplay":
        if self.show == "live":
            self._bars, self._task = _make_bar(self.budget)
            self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


def _make_bar(budget: TimeBudget) -> tuple[Any, Any]:
    from rich import progress
    from rich.console import Console

    bars = progress.Progress(
        progress.BarColumn(bar_width=8),
        *(progress.TextColumn(f"{{task.fields[{field}]}}", markup=False) for field in ("what", "text", "best")),
        time_left_column(budget.left),
        console=Console(stderr=True),
        refresh_per_second=4,
    )
    return bars, bars.add_task("search", total=budget.seconds, what="starting", text="", best="")
