"""The story of stage two: a token store in, a trained model out.

Every step seeds torch by (seed, epoch, step), and every batch is a function of the same. So a killed run, once resumed,
finishes with identical weights.
"""

import math
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gmn_pipeline.console.compile_notice import tell_compilation
from gmn_pipeline.console.interrupt import raise_if_interrupted
from gmn_pipeline.console.machine import peak_memory
from gmn_pipeline.counter_random import Purpose, key_path
from gmn_pipeline.errors import NotFiniteError, TrainError
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_train.data.labelled import LabelledData
from gmn_train.data.read_ahead import Clock, ReadAhead, look_ahead
from gmn_train.data.samplers import Loaded, Sampler, make_sampler
from gmn_train.data.steps import Step
from gmn_train.data.unread import unread_parts
from gmn_train.learning.averaging import WeightAverage
from gmn_train.learning.evaluation import evaluate_parts, is_better
from gmn_train.learning.losses import class_weights, task_loss
from gmn_train.learning.optimizer import AdamW, learning_rate, make_optimizer
from gmn_train.machine.compute import Compute
from gmn_train.model.frame import GraphModel, make_graph_model
from gmn_train.ranks.prediction import predict_together
from gmn_train.ranks.team import Grains, Team
from gmn_train.runs.checkpoint import Checkpoints, Progress
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.termination import Termination, stopped
from gmn_train.runs.watching.display import RunHeader, Watcher
from gmn_train.runs.watching.estimate import estimate_run
from gmn_train.settings.run_settings import TrainConfig

Place = tuple[int, Step]  # epoch, step


@dataclass
class Training:
    """The parts of a run that is under way."""

    config: TrainConfig
    sampler: Sampler
    model: GraphModel
    average: WeightAverage
    optimizer: AdamW
    compute: Compute
    class_weights: Tensor | None
    parts: tuple[str, ...] = ("val", "test")
    """What an epoch's evaluation looks at; a search leaves `test` out."""
    team: Team | None = None
    """Where a step is cut into grains, for several processes."""

    @classmethod
    def prepare(cls, config: TrainConfig, store: TokenStore, clock: Clock | None = None) -> "Training":
        """Build everything that a run needs. Raises whatever keeps it from starting; nothing is written."""
        compute = Compute.of(config)
        data = LabelledData.open(store, config)
        model = make_model(config, data, compute)
        weights = class_weights(data.task, np.asarray(data.graph.y)[data.items["train"]])
        if weights is not None:
            weights = weights.to(compute.device)
        sampler = make_sampler(data, config, clock)
        team = None if config.grains is None else Team.of(sampler, model, compute.device)
        assert config.epochs is not None
        average = WeightAverage(model, config.average, config.epochs * len(sampler.training_steps(0)))
        return cls(config, sampler, model, average, make_optimizer(model, config), compute, weights, team=team)

    def load(self, place: Place) -> Loaded | Grains:
        """Read the inputs of one step, or of this process's part of it."""
        self.sampler.data.store.check_length()
        return (self.sampler if self.team is None else self.team).load(place[1], place[0])

    def evaluate(self, model: GraphModel) -> dict[str, float]:
        """The metric of the parts that choose and report a model."""
        together = None if self.team is None else partial(predict_together, self.team)
        return evaluate_parts(self.sampler, model, self.compute, self.parts, together=together)


def train(
    config: TrainConfig,
    store: TokenStore,
    folder: RunFolder,
    watcher: Watcher,
    *,
    parts: tuple[str, ...] = ("val", "test"),
) -> dict[str, Any]:
    """Train from the beginning, or from the folder's last checkpoint; returns the summary it also writes.

    parts: of the split, what to evaluate; `val` is always among them.
    """
    assert config.epochs is not None
    clock = Clock()
    training = replace(Training.prepare(config, store, clock), parts=parts)
    checkpoints = Checkpoints(folder, config)
    progress = checkpoints.restore(training.model, training.average, training.optimizer)
    clock.add(progress.clock)  # of earlier sittings
    progress.clock = clock
    sampler = training.sampler
    if folder.writes:
        with folder.writing():
            sampler.data.trained_on.save(folder.path)
    watcher.start(describe_run(training, folder, progress.epoch))
    with tell_compilation(watcher.say), Termination() as termination:
        _estimate(training, progress, watcher)
        _run_epochs(training, folder, checkpoints, progress, watcher, termination)
    store.finish_check()
    summary = _summarise(training, progress)
    folder.write_summary(summary)
    return summary


def _estimate(training: Training, progress: Progress, watcher: Watcher) -> None:
    """Tell the watcher what to expect, from earlier sittings or from a few timed steps."""
    if watcher.wants_estimate and training.team is None:
        clock = progress.clock
        before = clock.trained + clock.evaluated + clock.waited
        estimate = estimate_run(training, measured=before / progress.epoch if progress.epoch else None)
        if estimate is not None:
            watcher.estimated(estimate)


def _run_epochs(
    training: Training,
    folder: RunFolder,
    checkpoints: Checkpoints,
    progress: Progress,
    watcher: Watcher,
    termination: Termination,
) -> None:
    """All steps that are still to do. Raises StoppedError, the run saved, where the process was told to end."""
    config, sampler, clock = training.config, training.sampler, progress.clock
    assert config.epochs is not None
    places = _places(sampler, progress, config.epochs)
    if sampler.data.store.storage.room is not None:  # the blocks of later steps come over the network meanwhile
        places = look_ahead(places, lambda place: sampler.expect(place[1]))
    ahead = ReadAhead(
        places,
        training.load,
        clock,
        threads=config.loader_threads,
    )
    saved_at, steps_of = time.monotonic(), dict[int, int]()
    for (epoch, step), loaded in ahead:
        steps = steps_of.setdefault(epoch, len(sampler.training_steps(epoch)))
        raise_if_interrupted()
        watcher.step(epoch, step.number, steps)
        rate = learning_rate(config, epoch + step.number / steps)
        with clock.training():
            loss, items = train_step(training, loaded, rate, (epoch, step.number))
        progress.loss_sum += loss * items
        progress.loss_count += items
        progress.step = step.number + 1
        stop = False
        if progress.step == steps:
            watcher.step(epoch, steps, steps)
            stop = _end_epoch(training, folder, checkpoints, progress, rate, watcher)
        asked = termination.asked if training.team is None else training.team.agree(termination.asked)
        end = asked or stop or progress.epoch == config.epochs
        if end or time.monotonic() - saved_at >= config.checkpoint_seconds:
            checkpoints.save(training.model, training.average, training.optimizer, progress)
            saved_at = time.monotonic()
        if stop:
            watcher.say(
                f"stopped early after epoch {progress.epoch}: none of the last {config.patience} epochs was better "
                f"than epoch {progress.best_epoch + 1}"
            )
            break
        if asked and progress.epoch < config.epochs:
            raise stopped(folder.path, progress.epoch, progress.step)


def _places(sampler: Sampler, progress: Progress, epochs: int) -> Iterator[Place]:
    """The steps that are still to do."""
    first_epoch, first_step = progress.epoch, progress.step
    for epoch in range(first_epoch, epochs):
        for step in sampler.training_steps(epoch):
            if epoch > first_epoch or step.number >= first_step:
                yield epoch, step


def train_step(training: Training, loaded: Loaded | Grains, rate: float, place: tuple[int, int]) -> tuple[float, int]:
    """One step; returns (loss, training items in it). TrainError names the place where something is not finite."""
    config, model, optimizer = training.config, training.model, training.optimizer
    optimizer.lr = rate
    model.train()
    optimizer.zero_grad()
    try:
        if isinstance(loaded, Loaded):
            value, items = _differentiate(training, loaded, place)
        else:
            assert training.team is not None
            value, items = training.team.differentiate(training, loaded, place)
    except NotFiniteError:
        raise _diverged("the model's states became NaN or infinite", place) from None
    if not math.isfinite(value):
        raise _diverged(f"the loss became {value}", place)
    norm = float(nn.utils.clip_grad_norm_(model.parameters(), config.clip or math.inf))
    if not math.isfinite(norm):  # before it reaches the weights, and with them a checkpoint
        raise _diverged(f"the gradient became {norm}", place)
    optimizer.step()
    training.average.update()
    return value, items


def _differentiate(training: Training, loaded: Loaded, place: tuple[int, int]) -> tuple[float, int]:
    """Set the gradients of a step in one piece; returns (loss, training items)."""
    compute, data = training.compute, training.sampler.data
    torch.manual_seed(int(key_path(training.config.seed, Purpose.DROPOUT, *place)) >> 1)
    rows = torch.from_numpy(np.flatnonzero(np.isin(loaded.items, data.items["train"])))
    with compute.autocast():
        logits = training.model(compute.move(loaded.inputs)).logits[rows.to(compute.device)]
    assert loaded.y is not None
    loss = task_loss(data.task, logits, loaded.y[rows].to(compute.device), training.class_weights)
    value = float(loss.detach())
    if math.isfinite(value):
        loss.backward()
    return value, len(rows)


def _diverged(what: str, place: tuple[int, int]) -> TrainError:
    return TrainError(
        f"{what} in epoch {place[0] + 1}, step {place[1] + 1}; the last good checkpoint is kept: try a lower lr, more "
        "warmup or a smaller clip"
    )


def _end_epoch(
    training: Training, folder: RunFolder, checkpoints: Checkpoints, progress: Progress, rate: float, watcher: Watcher
) -> bool:
    """Evaluate, record, keep the best, go on to the next epoch; returns whether to stop early."""
    config, epoch, clock = training.config, progress.epoch, progress.clock
    row: dict[str, Any] = {"epoch": epoch, "loss": progress.loss_sum / max(progress.loss_count, 1), "lr": rate}
    if (epoch + 1) % (config.eval_every or 1) == 0 or epoch + 1 == config.epochs:
        before = clock.evaluated
        try:
            with clock.evaluating():
                model: GraphModel = training.average.module  # type: ignore[assignment]
                row |= training.evaluate(model)
        except NotFiniteError:
            raise _diverged("the model's states became NaN or infinite", (epoch, progress.step - 1)) from None
        row["eval_seconds"] = round(clock.evaluated - before, 4)
        if is_better(row["val"], progress.best, training.sampler.data.task.higher_is_better):
            progress.best, progress.best_epoch, progress.test_at_best = row["val"], epoch, row.get("test", math.nan)
            checkpoints.save_best(model)
    row["seconds"] = round(clock.trained + clock.evaluated, 3)
    folder.append_metrics(row)
    watcher.epoch(row, progress.best, progress.best_epoch)
    progress.epoch, progress.step, progress.loss_sum, progress.loss_count = epoch + 1, 0, 0.0, 0
    return bool(config.patience) and progress.best_epoch >= 0 and epoch - progress.best_epoch >= config.patience


def make_model(config: TrainConfig, data: LabelledData, compute: Compute) -> GraphModel:
    """The model of a run, its weights drawn from the run's seed."""
    torch.manual_seed(int(key_path(config.seed, Purpose.WEIGHTS)) >> 1)
    return make_graph_model(config.model, data.source.facts).to(compute.device)


def describe_run(training: Training, folder: RunFolder, first_epoch: int = 0) -> RunHeader:
    """What is known of a run before its first step."""
    data, config = training.sampler.data, training.config
    return RunHeader(
        folder.path, config, data.task, len(data.items["train"]),
        sum(p.numel() for p in training.model.parameters()), str(training.compute.device), first_epoch,
        tuple(unread_parts(data.store.manifest, config.model)),
    )  # fmt: skip


def _summarise(training: Training, progress: Progress) -> dict[str, Any]:
    import numba

    import gmn_pipeline

    config, clock = training.config, progress.clock
    seconds = clock.trained + clock.evaluated
    return {
        "metric": training.sampler.data.task.metric,
        "best_epoch": progress.best_epoch,
        "val": progress.best,
        "test": progress.test_at_best,
        "epochs": progress.epoch,
        "seconds": round(seconds, 2),
        "seconds_per_epoch": round(seconds / max(progress.epoch, 1), 4),
        "evaluation_share": round(clock.evaluated / max(seconds, 1e-9), 4),
        "waiting_share": round(clock.waited / max(seconds + clock.waited, 1e-9), 4),
        "peak_memory_bytes": peak_memory(),
        "parameters": sum(p.numel() for p in training.model.parameters()),
        "model": config.model.name,
        "recipe": config.recipe,
        "mode": config.mode,
        "precision": training.compute.precision,
        "threads": torch.get_num_threads(),
        **({} if training.team is None else training.team.facts()),
        "seed": config.seed,
        "split": config.split,
        "store": {"name": config.store.name, "fingerprint": config.fingerprint},
        "tokens": training.sampler.data.source.view.settings.as_dict(),
        "versions": {
            "gmn-pipeline": gmn_pipeline.__version__,
            "torch": torch.__version__,
            "numba": numba.__version__,
            "python": platform.python_version(),
        },
    }
