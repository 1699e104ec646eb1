"""How long a search takes, and what of that is for what."""

import re
import time
from dataclasses import dataclass, field

from gmn_pipeline.errors import ConfigError

FULL_RUNS = 24
"""Whole runs of the defaults that the budget should hold: epochs are fewer where it would not. A third of them repeats
the finalists with other seeds; pruning makes some forty trials of the rest."""
MOST_REPEATS = 0.4
"""Of the budget, at most, for the finalists' repeats."""
SLOWEST = 4
"""A trial that would take more than this many times a full run is too slow to be searched."""
FEWEST_EPOCHS = 3
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Seconds of `30m`, `1h30m` or `45s`; ConfigError where it is no time."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or not 0 < seconds < float("inf"):
        raise ConfigError(f"--budget is '{text}'; write a time such as 30m, 2h or 1h30m")
    return seconds


@dataclass(frozen=True)
class TimeBudget:
    """A time that runs from now."""

    seconds: float
    begun: float = field(default_factory=time.monotonic)

    @property
    def end(self) -> float:
        return self.begun + self.seconds

    def left(self) -> float:
        return max(self.end - time.monotonic(), 0.0)

    @property
    def used(self) -> float:
        return time.monotonic() - self.begun

    def epochs(self, planned: int, seconds_per_epoch: float | None) -> int:
        """Epochs of each trial: those planned, or as many as let the budget hold `FULL_RUNS` runs."""
        if not seconds_per_epoch:
            return planned
        fitting = int(self.seconds / FULL_RUNS / seconds_per_epoch)
        return min(planned, max(fitting, FEWEST_EPOCHS))

    @property
    def slowest(self) -> float:
        """Seconds that no single trial may need."""
        return self.seconds * SLOWEST / FULL_RUNS
