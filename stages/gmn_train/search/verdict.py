"""What a search has found: the finalists, repeated with other seeds, and whether GMN beats its control beyond noise.

The best of many trials is lucky. So the best ones are trained again with seeds that nobody chose, and only these count:
their mean tells which is best, and their spread around their means, taken together, is the noise of one run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from gmn_train.model.tables import CONTROL
from gmn_train.search.study import SearchStudy

REPEATS = 3
"""Further seeds of each finalist."""
CANDIDATES = 2
"""Finalists of each side: of GMN, and of its control."""
ERRORS = 2.0
"""Standard errors that a difference must exceed."""


@dataclass(frozen=True)
class Finalist:
    """One of the best trials."""

    number: int
    settings: dict[str, Any]
    model: str
    first: float
    """Its validation in the study; chosen as one of the best, so too good."""
    seconds: float
    repeats: dict[int, float] = field(default_factory=dict)
    """Validation by further seeds."""

    @property
    def mean(self) -> float:
        """Over the further seeds; the first value where there is none."""
        return fmean(self.repeats.values()) if self.repeats else self.first

    @property
    def text(self) -> str:
        values = list(self.repeats.values())
        if len(values) < 2:
            return f"{self.mean:.4f} with one {'further ' if values else ''}seed"
        return f"{self.mean:.4f} ± {stdev(values):.4f} over {len(values)} further seeds"


@dataclass(frozen=True)
class Verdict:
    """The settings to use, and why."""

    chosen: Finalist
    control: Finalist | None
    """The best control; None where the study has none."""
    rival: Finalist | None
    """The best of the others; None where there is none."""
    noise: float | None
    """Standard deviation of one run; None where finalists were not repeated."""
    line: str


def find_finalists(study: SearchStudy) -> list[Finalist]:
    """The best complete trials: of both sides where the control is tried, else simply the best."""
    finalists: list[Finalist] = []
    for trial in study.best_first():
        settings = study.settings_of(trial)
        model = str(settings.get("model.name", study.proposals.base["model.name"]))
        side = [f for f in finalists if not study.proposals.compares or (f.model == CONTROL) == (model == CONTROL)]
        if len(side) < CANDIDATES and settings not in [f.settings for f in side]:
            assert trial.value is not None
            seconds = float(trial.user_attrs.get("seconds", 0.0))
            finalists.append(Finalist(trial.number, settings, model, trial.value, seconds, study.repeats(trial.number)))
    return finalists


def measure_noise(finalists: Sequence[Finalist]) -> float | None:
    """Standard deviation of one run around its settings' mean, pooled; None where none has two repeats."""
    squares, freedom = 0.0, 0
    for finalist in finalists:
        values = list(finalist.repeats.values())
        if len(values) > 1:
            squares += sum((value - fmean(values)) ** 2 for value in values)
            freedom += len(values) - 1
    return math.sqrt(squares / freedom) if freedom else None


def judge_finalists(finalists: Sequence[Finalist], *, higher: bool) -> Verdict | None:
    """Which settings to use; None where no trial is complete. The control wins ties: it is the cheaper one."""
    sign = 1.0 if higher else -1.0

    def best(side: list[Finalist]) -> Finalist | None:
        # a finalist with repeats before one without: its mean is no lucky pick
        return max(side, key=lambda f: (len(f.repeats) > 1, sign * f.mean), default=None)

    control = best([f for f in finalists if f.model == CONTROL])
    rival = best([f for f in finalists if f.model != CONTROL])
    chosen = rival or control
    if chosen is None:
        return None
    noise = measure_noise(finalists)
    if control is None or rival is None:
        return Verdict(chosen, control, rival, noise, "the control was not tried, so there is nothing to compare with")
    gain = sign * (rival.mean - control.mean)
    if noise is None or min(len(rival.repeats), len(control.repeats)) < 2:
        repeated = bool(rival.repeats and control.repeats)  # or else a mean would be compared with a lucky first value
        ahead = sign * (rival.mean - control.mean if repeated else rival.first - control.first)
        line = "nothing is decided: the time was too short to train both sides with two further seeds"
        return Verdict(rival if ahead > 0 else control, control, rival, None, line)
    margin = ERRORS * noise * math.sqrt(1 / len(rival.repeats) + 1 / len(control.repeats))
    facts = f"{rival.model} {rival.text}, {CONTROL} {control.text}; the difference of {gain:+.4f} is"
    if gain > margin:
        return Verdict(rival, control, rival, noise, f"{rival.model} helps: {facts} beyond noise (± {margin:.4f})")
    if gain < -margin:
        line = f"message passing alone is better, use {CONTROL}: {facts} beyond noise (± {margin:.4f})"
        return Verdict(control, control, rival, noise, line)
    line = f"GMN does not help here, use {CONTROL}: {facts} within noise (± {margin:.4f})"
    return Verdict(control, control, rival, noise, line)
