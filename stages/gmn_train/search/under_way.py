"""A search under way: trials, and the repeats of the best, until the time is over."""

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from gmn_pipeline.console.interrupt import raise_if_interrupted
from gmn_pipeline.disk.lock import is_locked
from gmn_pipeline.errors import ConfigError, GmnError, StoppedError, TrainError
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_train.model.tables import CONTROL
from gmn_train.runs.termination import Termination
from gmn_train.search.budget import MOST_REPEATS, TimeBudget
from gmn_train.search.progress import SearchDisplay
from gmn_train.search.proposal import Proposals
from gmn_train.search.study import SearchStudy
from gmn_train.search.trial_run import CutShortError, Judge, OutOfTimeError, run_in, trial_folder
from gmn_train.search.verdict import REPEATS, find_finalists
from gmn_train.settings.run_settings import TrainConfig

if TYPE_CHECKING:
    from optuna import Trial

MOST_FAILURES = 20
"""Trials in a row that may fail before the search gives up."""


@dataclass
class Search:
    """A search under way."""

    study: SearchStudy
    store: TokenStore
    folder: Path
    budget: TimeBudget
    display: SearchDisplay
    epochs: int
    schedule: dict[str, int]
    """Epochs of a trial, and its warm-up where they are fewer than a run's."""
    most_trials: int | None
    termination: Termination
    seed: int
    splits: tuple[int, ...]
    """A trial is trained on each of them, and counts by the mean."""

    def run_trials(self) -> None:
        """Trials, until the time that is left is needed for repeats or there are enough."""
        failures = 0
        while self.goes_on() and not self.has_enough():
            until = self.budget.end - self.reserve()
            if self.budget.left() <= self.reserve():
                return
            failures = 0 if self.run_trial(self.study.ask(), until) else failures + 1
            if failures == MOST_FAILURES:
                raise TrainError(f"the last {failures} trials failed; see the lines above, or --debug")

    def goes_on(self) -> bool:
        """Raises where the process was told to end."""
        raise_if_interrupted()
        if self.termination.asked:
            raise StoppedError("stopped by SIGTERM")
        return self.budget.left() > 0

    def has_enough(self) -> bool:
        done = len(self.study.trials("COMPLETE", "PRUNED"))
        return self.most_trials is not None and done >= self.most_trials

    def reserve(self) -> float:
        """Seconds to keep for the finalists' repeats, as far as they are not done, and for the control's twin."""
        finalists = find_finalists(self.study)
        needed = sum(f.seconds * (REPEATS - min(len(f.repeats), REPEATS)) for f in finalists)
        twin = max((f.seconds for f in finalists if f.model == CONTROL), default=0.0)
        return min(needed + twin, MOST_REPEATS * self.budget.seconds)

    def slowest(self) -> float:
        """Seconds that a trial may need: a share of the budget, or twice a start's where that is more."""
        starts = [t for t in self.study.trials("COMPLETE") if "start" in t.user_attrs]
        return max(self.budget.slowest, *(2 * float(t.user_attrs["seconds"]) for t in starts), 0.0)

    def run_trial(self, trial: "Trial", until: float) -> bool:
        """Train one; the study hears how it ended. Returns whether anything was learned from it."""
        study, what, start = self.study, f"trial {trial.number}", trial.user_attrs.get("start")
        try:
            drawn = study.proposals.draw(trial)
            configs = self.resolve(drawn, self.seed)
        except ConfigError as error:  # a combination that cannot be
            study.end(trial, None)
            self.display.say(f"{what}  failed: {error}")
            return False
        changed = describe_changes(study.proposals, drawn) + (f" ({start})" if start else "")
        judge = Judge(
            trial, higher=study.higher, until=until, slowest=self.slowest(), spared=start is not None,
            show=self.display.follow(f"{what}, {configs[0].model.name}", self.epochs), tell=self.display.say,
        )  # fmt: skip
        try:
            summary = self.train("trials", configs, judge, what)
        except (KeyboardInterrupt, StoppedError):
            study.give_back(trial)
            raise
        except OutOfTimeError as end:
            if start is not None:
                study.give_back(trial)
            else:
                study.end(trial, None, pruned=str(end))
            self.display.trial(what, str(end), changed)
        except CutShortError as end:
            study.end(trial, None, pruned=str(end))
            self.display.trial(what, f"val {judge.best:.4f}, {end}", changed)
        except GmnError as error:
            study.end(trial, None, pruned=f"failed: {error}")  # as bad as can be: settings near it are avoided
            self.display.trial(what, f"failed: {error}", changed)
            return False
        else:
            trial.set_user_attr("seconds", summary["seconds"])
            trial.set_user_attr("parameters", summary["parameters"])
            value = summary["val"]
            study.end(trial, None if math.isnan(value) else value)
            self.tell_best()
            self.display.trial(what, f"val {value:.4f}", changed)
        return True

    def tell_best(self) -> None:
        best = self.study.best_first()
        if best:
            name = self.study.settings_of(best[0]).get("model.name", self.study.proposals.base["model.name"])
            self.display.best = f"best {best[0].value:.4f} (trial {best[0].number}, {name})"

    def resolve(self, drawn: dict[str, Any], seed: int) -> list[TrainConfig]:
        """The settings at each split: what follows from the data may differ."""
        request = self.study.proposals.request
        return [request(drawn, **self.schedule, seed=seed, split=split).config for split in self.splits]

    def train(self, where: str, configs: list[TrainConfig], judge: Judge, what: str) -> dict[str, Any]:
        """The first split as the judge allows, then the others; validation is the mean, seconds are the sum."""
        summaries = [run_in(self.folder / where, configs[0], self.store, judge)]
        for config in configs[1:]:
            show = self.display.follow(f"{what}, split {config.split}", self.epochs)
            alone = Judge(None, higher=judge.higher, until=judge.until, show=show, tell=judge.tell)
            summaries.append(run_in(self.folder / where, config, self.store, alone))
        return {
            "val": fmean(summary["val"] for summary in summaries),
            "seconds": sum(summary["seconds"] for summary in summaries),
            "parameters": summaries[0]["parameters"],
        }

    def repeat_finalists(self) -> None:
        """The best GMN's own control as a trial, then each finalist with further seeds, as far as the time goes."""
        if self.study.proposals.compares and self.goes_on():
            self.run_twin()
        for seed in range(self.seed + 1, self.seed + 1 + REPEATS):
            for finalist in find_finalists(self.study):
                if seed not in finalist.repeats and self.goes_on():
                    self.repeat(finalist.number, finalist.settings, seed)

    def run_twin(self) -> None:
        """The control with the best GMN's other settings, unless it was tried."""
        best = next((f for f in find_finalists(self.study) if f.model != CONTROL), None)
        if best is None:
            return
        params = self.study.proposals.parameters({**best.settings, "model.name": CONTROL})
        if params not in [dict(trial.params) for trial in self.study.trials("COMPLETE")]:
            self.study.enqueue(params, f"control of trial {best.number}")
        while self.study.trials("WAITING") and self.goes_on():
            self.run_trial(self.study.ask(), self.budget.end)

    def repeat(self, number: int, settings: dict[str, Any], seed: int) -> None:
        what = f"trial {number}, seed {seed}"
        configs = self.resolve(settings, seed)
        if any(is_locked(trial_folder(self.folder / "repeats", config)) for config in configs):
            return  # another process is at it
        show = self.display.follow(what, self.epochs)
        judge = Judge(None, higher=self.study.higher, until=self.budget.end, show=show, tell=self.display.say)
        try:
            summary = self.train("repeats", configs, judge, what)
        except OutOfTimeError:
            return
        except GmnError as error:
            if isinstance(error, StoppedError):
                raise
            self.display.say(f"{what}  not repeated: {error}")
            return
        if not math.isnan(summary["val"]):
            self.study.add_repeat(number, seed, summary["val"])
        self.display.trial(what, f"val {summary['val']:.4f}", configs[0].model.name)


def describe_changes(proposals: Proposals, drawn: dict[str, Any]) -> str:
    """What a trial changes of the plain run."""
    changed = {key: value for key, value in drawn.items() if proposals.base.get(key) != value}
    return " ".join(f"{key.removeprefix('model.')}={value}" for key, value in changed.items()) or "as it is"
