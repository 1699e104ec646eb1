"""Runs as a user starts them: new, resumed, or several seeds and splits in one command."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.disk.lock import remove_stale_lock
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_train.grains.wire import Wire
from gmn_train.machine.compute import Compute, use_threads
from gmn_train.ranks.alike import check_alike
from gmn_train.ranks.environment import processes_here
from gmn_train.ranks.follower import folder_for
from gmn_train.ranks.join import agree, gather_values, join_others
from gmn_train.runs.control import (
    EQUAL_EPOCHS,
    EQUAL_SECONDS,
    as_long_as,
    as_many_epochs,
    control_dir,
    control_of,
    note_controls,
)
from gmn_train.runs.folder import RunFolder, default_run_dir
from gmn_train.runs.refusals import (
    check_longer,
    check_own_store,
    check_same_run,
    check_shared,
    folder_of_several,
    named_dir,
)
from gmn_train.runs.watching.display import RunHeader, Watcher
from gmn_train.runs.watching.estimate import RunCost, estimate_run
from gmn_train.settings.run_settings import TrainConfig
from gmn_train.train import Training, describe_run, train


@dataclass(frozen=True)
class Finished:
    """One run that is done."""

    path: Path
    summary: dict[str, Any]
    existed: bool = False
    """Whether it was there already."""
    controls: "Mapping[str, Finished]" = field(default_factory=dict)
    """Its own control at `equal epochs` and `equal seconds`, where it was asked for."""


def start_runs(
    config: TrainConfig,
    watcher: Watcher,
    *,
    seeds: Sequence[int] = (),
    at_splits: Sequence[TrainConfig] = (),
    name: str | None = None,
    run_dir: Path | None = None,
    force: bool = False,
    with_control: bool = False,
) -> list[Finished]:
    """Train once per seed and split. A run that is finished is reported, one that was interrupted is resumed.

    at_splits: the settings at several splits, instead of `config`: defaults that follow from the data may differ in
    them. run_dir: the run's folder, or the folder of several; data/runs/... by default. name: the same in data/runs.
    force: start anew even if it exists. with_control: train the run's message passing alone, too.
    """
    run_dir = named_dir(name, run_dir)
    if with_control:
        control_of(config)  # a mistake is reported before the run
    use_threads(config.threads)
    store = open_store(config)
    precision = Compute.of(config, watcher.say).precision
    pairs = list(itertools.product(at_splits or [config], seeds or [config.seed]))
    done = []
    for at_split, seed in pairs:
        one = replace(at_split, seed=seed, precision=precision)
        path = default_run_dir(one) if run_dir is None else run_dir
        if len(pairs) > 1:
            path = path if run_dir is None else folder_of_several(run_dir, one)
            watcher.say(f"seed {seed}, split {one.split}: {path}")
        run = _start(one, store, RunFolder(path), watcher, force=force)
        controls = _start_controls(one, run, store, watcher, run_dir, force=force) if with_control else {}
        done.append(replace(run, controls=controls))
    return done


def _start_controls(
    config: TrainConfig, run: Finished, store: TokenStore, watcher: Watcher, run_dir: Path | None, *, force: bool
) -> dict[str, Finished]:
    """The run's control at equal epochs, then with as many epochs as fit the seconds that the run took."""
    control, done = as_many_epochs(control_of(config), run.summary), dict[str, Finished]()
    wire = wire_of(config)
    for which in (EQUAL_EPOCHS, EQUAL_SECONDS):
        if which == EQUAL_SECONDS:
            # Every process has a clock of its own; the first one's counts.
            whole, beside = gather_values(wire, [run.summary, done[EQUAL_EPOCHS].summary])[0]
            control = as_long_as(control, whole, beside)
        path = control_dir(control, run.path, run_dir, which)
        watcher.say(f"control at {which}: {control.epochs} epochs, {path}")
        done[which] = _start(control, store, RunFolder(path), watcher, force=force)
        if wire.rank == 0:
            note_controls(run.path, {name: finished.path for name, finished in done.items()})
    return done


@dataclass(frozen=True)
class Planned:
    """A run as it would be: nothing is written."""

    header: RunHeader
    estimate: RunCost | None
    """None where the timed steps failed, as the run's own would."""
    grains: int | None = None
    """Those of the run. The estimate is of one process in one piece in any case."""


def plan_run(config: TrainConfig, watcher: Watcher, *, name: str | None = None, run_dir: Path | None = None) -> Planned:
    """Resolve a run and time a few steps of it. Raises whatever would keep it from starting."""
    from gmn_pipeline.console.compile_notice import tell_compilation

    use_threads(config.threads)
    store = open_store(config)
    config = replace(config, precision=Compute.of(config, watcher.say).precision)
    config, grains = replace(config, grains=None), config.grains  # timed in one piece, on one process
    training, run_dir = Training.prepare(config, store), named_dir(name, run_dir)
    folder = RunFolder(default_run_dir(config) if run_dir is None else run_dir)
    with tell_compilation(watcher.say):
        return Planned(describe_run(training, folder), estimate_run(training), grains)


def open_store(config: TrainConfig) -> TokenStore:
    """The store of a run's settings; TrainError where it is another one now."""
    store = TokenStore.open(config.store, check=config.check)
    check_own_store(config, store.fingerprint)
    return store


def _start(config: TrainConfig, store: TokenStore, folder: RunFolder, watcher: Watcher, *, force: bool) -> Finished:
    wire = wire_of(config)
    folder = folder_for(wire, folder)
    fresh = force or not folder.exists
    check_alike(wire, config, folder, fresh=fresh)
    if fresh:
        Training.prepare(config, store)  # a mistake is reported before anything is written
    else:
        check_same_run(folder, config)
        if (summary := folder.summary()) is not None:
            remove_stale_lock(folder.path)
            return Finished(folder.path, summary, existed=True)
    try:
        agree(wire, False)  # all have looked at what is there before the first one changes it
        with folder.alone():
            if fresh:
                folder.create(config)
            else:
                watcher.say(f"{folder.path}: continuing from its last checkpoint")
            agree(wire, False)
            return Finished(folder.path, train(config, store, folder, watcher))
    finally:
        watcher.stop()


def wire_of(config: TrainConfig) -> Wire:
    """What ties this process to the others of its run."""
    return Wire() if config.grains is None else join_others()


def resume_run(
    path: Path, watcher: Watcher, *, threads: int | None = None, epochs: int | None = None, procs: int | None = None
) -> Finished:
    """Continue an interrupted run, from its own settings; or train any run longer, to `epochs` in all.

    Longer: the weights and the optimizer go on as they are, and the learning rate follows the schedule of the new
    total from there, so it rises again first. config.toml keeps the earlier totals.
    """
    folder = RunFolder(path)
    config = folder.config()
    if procs is not None and procs != config.procs:
        threads = threads or max(1, usable_cores() // processes_here(procs))
        config = replace(config, procs=procs)
    check_shared(path, config, config.procs)
    config = replace(config, threads=threads or config.threads)
    use_threads(config.threads)
    store = open_store(config)
    check_longer(path, config, epochs)
    wire = wire_of(config)
    longer = epochs is not None and epochs != config.epochs
    if longer:
        assert config.epochs is not None
        config = replace(config, epochs=epochs, extended_from=(*(config.extended_from or ()), config.epochs))
    check_alike(wire, config, folder, fresh=False)  # all have read the settings before the first one changes them
    if longer:
        folder = folder_for(wire, folder)
        with folder.alone():
            folder.extend(config)
    agree(wire, False)
    return _start(config, store, folder, watcher, force=False)


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
