"""Shows a person how far each phase is, and remembers how long it took."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from gmn_pipeline.console.streams import tell

Show = Literal["bars", "lines", "notes", "nothing"]


class Phases:
    """The phases of a run: bars on a terminal, a line each in a log, notes alone, or nothing. All goes to stderr.

    Phases may overlap. Use as a context manager: the bars live until it is left.
    """

    def __init__(self, show: Show = "nothing") -> None:
        self.show = show
        self.seconds: dict[str, float] = {}
        self._bars: Any = _make_bars() if show == "bars" else None

    @classmethod
    def for_person(cls, *, silent: bool) -> "Phases":
        return cls("nothing" if silent else "bars" if sys.stderr.isatty() else "lines")

    def __enter__(self) -> "Phases":
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def say(self, message: str) -> None:
        """One line, above the bars."""
        if self._bars is not None:
            self._bars.console.print(message, markup=False, highlight=False)
        elif self.show != "nothing":
            tell(message)

    def insist(self, message: str) -> None:
        """One line that is said even where nothing is shown: what is waited for."""
        if self.show == "nothing":
            tell(message)
        else:
            self.say(message)

    def tell_share(self, name: str, done: int, total: int) -> None:
        """How far a long phase is, in a log; bars show it by themselves."""
        if self.show == "lines" and done < total:
            self.say(f"{name}: {done:,} of {total:,} parts done")

    @contextmanager
    def phase(self, name: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
        """Run one phase of `total` units; it yields `advance(count)`."""
        begun = time.perf_counter()
        if self._bars is not None:
            task = self._bars.add_task(name, total=total, unit=unit)
            yield lambda count: self._bars.advance(task, count)
            self._bars.update(task, completed=total)
        else:
            yield lambda _: None
        took = time.perf_counter() - begun
        self.seconds[name] = self.seconds.get(name, 0.0) + took
        if self.show == "lines":
            self.say(f"{name}: {total:,} {unit} in {took:.1f} s")


def _make_bars() -> Any:
    from rich import progress
    from rich.console import Console

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> str:
            speed = task.finished_speed or task.speed
            return f"{_short(speed)} {task.fields['unit']}/s" if speed and task.total != 1 else ""

    columns = (
        progress.TextColumn("{task.description:<14}"),
        progress.BarColumn(bar_width=24),
        progress.TaskProgressColumn(),
        Rate(),
        progress.TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    return progress.Progress(*columns, console=Console(stderr=True), refresh_per_second=8)


def _short(value: float) -> str:
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.1f}{suffix}"
    return f"{value:.0f}"
