"""The story of stage two: a token store in, a trained model out.

Every step seeds torch by (seed, epoch, step), and every batch is a function of the same. So a killed run, once resumed,
finishes with identical weights.
"""

import math
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gmn_pipeline.console.compile_notice import tell_compilation
from gmn_pipeline.console.interrupt import raise_if_interrupted
from gmn_pipeline.console.machine import peak_memory
from gmn_pipeline.counter_random import Purpose, key_path
from gmn_pipeline.errors import NotFiniteError, TrainError
from gmn_pipeline.store.reader import TokenStore
from gmn_train.data.labelled import LabelledData
from gmn_train.data.read_ahead import Clock, ReadAhead
from gmn_train.data.samplers import Loaded, Sampler, make_sampler
from gmn_train.data.steps import Step
from gmn_train.data.unread import unread_parts
from gmn_train.learning.evaluation import evaluate_parts, is_better
from gmn_train.learning.losses import class_weights, task_loss
from gmn_train.learning.optimizer import learning_rate, make_optimizer
from gmn_train.machine.compute import Compute
from gmn_train.model.frame import GraphModel, make_graph_model
from gmn_train.runs.checkpoint import Checkpoints, Progress
from gmn_train.runs.display import RunHeader, Watcher
from gmn_train.runs.estimate import estimate_run
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.termination import Termination, stopped
from gmn_train.settings.run_settings import TrainConfig

Place = tuple[int, Step]  # epoch, step


@dataclass
class Training:
    """The parts of a run that is under way."""

    config: TrainConfig
    sampler: Sampler
    model: GraphModel
    optimizer: torch.optim.Optimizer
    compute: Compute
    class_weights: Tensor | None

    @classmethod
    def prepare(cls, config: TrainConfig, store: TokenStore, clock: Clock | None = None) -> "Training":
        """Build everything that a run needs. Raises whatever keeps it from starting; nothing is written."""
        compute = Compute.of(config)
        data = LabelledData.open(store, config)
        model = make_model(config, data, compute)
        weights = class_weights(data.task, np.asarray(data.graph.y)[data.items["train"]])
        if weights is not None:
            weights = weights.to(compute.device)
        return cls(config, make_sampler(data, config, clock), model, make_optimizer(model, config), compute, weights)


def train(config: TrainConfig, store: TokenStore, folder: RunFolder, watcher: Watcher) -> dict[str, Any]:
    """Train from the beginning, or from the folder's last checkpoint; returns the summary it also writes."""
    assert config.epochs is not None
    clock = Clock()
    training = Training.prepare(config, store, clock)
    checkpoints = Checkpoints(folder, config)
    progress = checkpoints.restore(training.model, training.optimizer)
    clock.add(progress.clock)  # of earlier sittings
    progress.clock = clock
    sampler = training.sampler
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
    if watcher.wants_estimate:
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
    ahead = ReadAhead(
        _places(sampler, progress, config.epochs),
        lambda place: sampler.load(place[1], place[0]),
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
        end = termination.asked or stop or progress.epoch == config.epochs
        if end or time.monotonic() - saved_at >= config.checkpoint_seconds:
            checkpoints.save(training.model, training.optimizer, progress)
            saved_at = time.monotonic()
        if stop:
            watcher.say(
                f"stopped early after epoch {progress.epoch}: none of the last {config.patience} epochs was better "
                f"than epoch {progress.best_epoch + 1}"
            )
            break
        if termination.asked and progress.epoch < config.epochs:
            raise stopped(folder.path, progress.epoch, progress.step)


def _places(sampler: Sampler, progress: Progress, epochs: int) -> Iterator[Place]:
    """The steps that are still to do."""
    first_epoch, first_step = progress.epoch, progress.step
    for epoch in range(first_epoch, epochs):
        for step in sampler.training_steps(epoch):
            if epoch > first_epoch or step.number >= first_step:
                yield epoch, step


def train_step(training: Training, loaded: Loaded, rate: float, place: tuple[int, int]) -> tuple[float, int]:
    """One step; returns (loss, training items in it). TrainError names the place where something is not finite."""
    config, model, optimizer, compute = training.config, training.model, training.optimizer, training.compute
    torch.manual_seed(int(key_path(config.seed, Purpose.DROPOUT, *place)) >> 1)
    for group in optimizer.param_groups:
        group["lr"] = rate
    data = training.sampler.data
    rows = torch.from_numpy(np.flatnonzero(np.isin(loaded.items, data.items["train"])))
    model.train()
    try:
        with compute.autocast():
            logits = model(compute.move(loaded.inputs)).logits[rows.to(compute.device)]
    except NotFiniteError:
        raise _diverged("the model's states became NaN or infinite", place) from None
    assert loaded.y is not None
    loss = task_loss(data.task, logits, loaded.y[rows].to(compute.device), training.class_weights)
    value = float(loss.detach())
    if not math.isfinite(value):
        raise _diverged(f"the loss became {value}", place)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = float(nn.utils.clip_grad_norm_(model.parameters(), config.clip or math.inf))
    if not math.isfinite(norm):  # before it reaches the weights, and with them a checkpoint
        raise _diverged(f"the gradient became {norm}", place)
    optimizer.step()
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
    if (epoch + 1) % config.eval_every == 0 or epoch + 1 == config.epochs:
        before = clock.evaluated
        try:
            with clock.evaluating():
                row |= evaluate_parts(training.sampler, training.model, training.compute, ("val", "test"))
        except NotFiniteError:
            raise _diverged("the model's states became NaN or infinite", (epoch, progress.step - 1)) from None
        row["eval_seconds"] = round(clock.evaluated - before, 4)
        if is_better(row["val"], progress.best, training.sampler.data.task.higher_is_better):
            progress.best, progress.best_epoch, progress.test_at_best = row["val"], epoch, row["test"]
            checkpoints.save_best(training.model)
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
