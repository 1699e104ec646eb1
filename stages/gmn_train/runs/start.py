"""Runs as a user starts them: new, resumed, or several seeds and splits in one command."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from gmn_pipeline.errors import ConfigError, TrainError
from gmn_pipeline.store.reader import TokenStore
from gmn_train.runs.display import Display
from gmn_train.runs.folder import RunFolder, config_table, default_run_dir
from gmn_train.settings.train_config import TrainConfig


@dataclass(frozen=True)
class Finished:
    """One run that is done."""

    path: Path
    summary: dict[str, Any]
    found: bool = False
    """Whether it was there already."""


def start_runs(config: TrainConfig, seeds: Sequence[int], splits: Sequence[int], display: Display) -> list[Finished]:
    """Train once per seed and split. A run that is finished is reported, one that was interrupted is resumed."""
    fingerprint = TokenStore.open(config.store).fingerprint
    several = len(seeds) * len(splits) > 1
    done = []
    for split, seed in itertools.product(splits, seeds):
        one = replace(config, seed=seed, split=split)
        path = default_run_dir(one, fingerprint)
        if config.run_dir is not None:
            path = config.run_dir / f"seed{seed}-split{split}" if several else config.run_dir
        if several:
            display.say(f"seed {seed}, split {split}: {path}")
        done.append(_start(one, RunFolder(path), display))
    return done


def _start(config: TrainConfig, folder: RunFolder, display: Display) -> Finished:
    from gmn_train.data.session import Session
    from gmn_train.train import choose_device, train

    if config.force or not folder.exists:
        choose_device(config.device)
        Session(config)  # a mistake is told before anything is written
    elif _content(folder.config()) != _content(config):
        raise TrainError(f"{folder.path} is a run with other settings; choose another --run-dir, or pass --force")
    elif (summary := folder.summary()) is not None:
        return Finished(folder.path, summary, found=True)
    try:
        with folder.alone():
            if config.force or not folder.exists:
                folder.create(config)
            else:
                display.say(f"{folder.path} was interrupted; going on from its last checkpoint")
            return Finished(folder.path, train(config, folder, display))
    finally:
        display.stop()


def resume_run(path: Path, display: Display) -> Finished:
    """Go on with an interrupted run, from its own settings."""
    folder = RunFolder(path)
    return _start(folder.config(), folder, display)


def _content(config: TrainConfig) -> dict[str, Any]:
    """What a run's results depend on."""
    table = config_table(config)
    for name in ("run_dir", "force", "threads", "loader_threads", "checkpoint_seconds", "device", "store"):
        table.pop(name, None)
    return table


def parse_numbers(text: str, what: str) -> list[int]:
    """`0,1,5-8` as a list of numbers; ConfigError where it is none."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ConfigError(f"--{what} is '{text}'; give numbers and ranges, such as 0,1,2 or 0-9")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def average_runs(runs: Sequence[Finished]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation of the test metric: over all runs, over seeds (splits averaged), over splits."""
    by_seed: dict[int, list[float]] = {}
    by_split: dict[int, list[float]] = {}
    for run in runs:
        by_seed.setdefault(run.summary["seed"], []).append(run.summary["test"])
        by_split.setdefault(run.summary["split"], []).append(run.summary["test"])
    return {
        "runs": _spread([run.summary["test"] for run in runs]),
        "seeds": _spread([fmean(values) for values in by_seed.values()]),
        "splits": _spread([fmean(values) for values in by_split.values()]),
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {"count": len(values), "mean": fmean(values), "std": stdev(values) if len(values) > 1 else 0.0}
