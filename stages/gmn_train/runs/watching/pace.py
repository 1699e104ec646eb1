"""How long a run will still take, from the seconds of its own steps and epochs."""

import time
from collections import deque
from collections.abc import Callable

RECENT = 5
"""Epochs whose mean is the pace: enough to be steady, few enough to follow a machine that becomes busy."""


class Pace:
    """Seconds left of a run. A sitting's first step compiles kernels, so it counts only while there is nothing else."""

    def __init__(self, epochs: int, first_epoch: int = 0, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.epochs, self.done, self._clock = epochs, first_epoch, clock
        self._begun = self._mark = clock()
        self._mark_step: int | None = None
        """The step whose beginning is `_mark`: the second of this sitting, once it is reached."""
        self._first_step: int | None = None
        self._first = True
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._expected: float | None = None

    def expect(self, seconds_per_epoch: float) -> None:
        """What an estimate says an epoch takes; it counts until there are measured seconds. The run begins now."""
        self._expected = seconds_per_epoch
        self._begun = self._clock()

    def step(self, step: int, steps: int) -> None:
        """`step` of `steps` begins; `step == steps`: the epoch's evaluation does."""
        now = self._clock()
        if step == 0:
            self._begun = now
        if self._first_step is None:
            self._first_step = step
        elif self._mark_step is None:  # the first step is over, and with it compilation
            self._mark, self._mark_step = now, step
        elif not self._recent and step > self._mark_step:
            self._expected = (now - self._mark) / (step - self._mark_step) * steps

    def epoch(self) -> None:
        """An epoch is over."""
        now = self._clock()
        if self._first and len(self._recent) == 1:
            self._recent.clear()
            self._first = False
        whole = not self._first_step  # a run resumed within an epoch does only its rest
        self._first_step = 0
        if whole or self._expected is None:
            self._recent.append(now - self._begun)
        self.done, self._begun = self.done + 1, now

    @property
    def seconds_per_epoch(self) -> float | None:
        return sum(self._recent) / len(self._recent) if self._recent else self._expected

    def left(self) -> float | None:
        """Seconds to the last epoch's end; None where nothing is known yet."""
        each = self.seconds_per_epoch
        if each is None:
            return None
        if self.done >= self.epochs:
            return 0.0
        here = max(each - (self._clock() - self._begun), 0.0)
        return here + (self.epochs - self.done - 1) * each


def duration_text(seconds: float) -> str:
    """A duration as a person says it: `8 s`, `3 min`, `2 h 05 min`, `3 d 4 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def epoch_text(seconds: float) -> str:
    """The same with a second digit for short ones: `0.083 s`, `8.2 s`, `15 s`."""
    return f"{seconds:.2g} s" if seconds < 9.95 else duration_text(seconds)
