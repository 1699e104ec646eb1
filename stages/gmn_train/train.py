"""The story of stage two: a token store in, a trained model out.

Every step seeds torch by (seed, epoch, step) and every batch is a function of the same, so a run that was killed and
resumed ends with the same weights as one that was not.
"""

import math
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gmn_pipeline.console.machine import peak_memory
from gmn_pipeline.counter_random import Purpose, key_path
from gmn_pipeline.errors import NotFiniteError, TrainError
from gmn_train.data.inputs import to_device
from gmn_train.data.read_ahead import ReadAhead
from gmn_train.data.session import Loaded, Session
from gmn_train.data.steps import Step
from gmn_train.learning.evaluation import evaluate_parts
from gmn_train.learning.losses import class_weights, task_loss
from gmn_train.learning.optimizer import learning_rate, make_optimizer
from gmn_train.learning.precision import choose_precision, computing_in
from gmn_train.model.baselines.baseline import make_graph_model
from gmn_train.model.frame import GraphModel
from gmn_train.runs.display import Display
from gmn_train.runs.folder import RunFolder
from gmn_train.settings.train_config import TrainConfig

Place = tuple[int, Step]  # epoch, step


@dataclass
class Progress:
    """Where a run is; everything but weights that a resume needs."""

    epoch: int = 0
    step: int = 0
    """Steps of this epoch already done."""
    loss_sum: float = 0.0
    loss_count: int = 0
    best: float = math.nan
    best_epoch: int = -1
    test_at_best: float = math.nan
    seconds: float = 0.0
    """Of training, over all sittings."""
    waited: float = 0.0
    extra: dict[str, float] = field(default_factory=dict)


def train(config: TrainConfig, folder: RunFolder, display: Display) -> dict[str, Any]:
    """Train from the beginning, or from the folder's last checkpoint; returns the summary it also writes."""
    device = choose_device(config.device)
    session = Session(config)
    model = make_model(session, device)
    optimizer = make_optimizer(model, config)
    progress = _restore(folder, session, model, optimizer)
    session.precision = choose_precision(config, device, display.say, folder.precision())
    epochs = total_epochs(session)
    weights = class_weights(session.task, np.asarray(session.graph.y)[session.items["train"]])
    display.start(session, epochs, sum(p.numel() for p in model.parameters()))

    def places() -> Iterator[Place]:
        for epoch in range(progress.epoch, epochs):
            for step in session.training_steps(epoch):
                if epoch > progress.epoch or step.number >= progress.step:
                    yield epoch, step

    ahead = ReadAhead(places(), lambda place: session.load(place[1], place[0]), threads=config.loader_threads)
    saved_at, waited_before, waited_inside = time.monotonic(), progress.waited, 0.0
    steps_of: dict[int, int] = {}
    for (epoch, step), loaded in ahead:
        begun = time.perf_counter()
        steps_of.setdefault(epoch, len(session.training_steps(epoch)))
        count = steps_of[epoch]
        rate = learning_rate(config, session, (epoch + step.number / count), epochs)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss, items = _train_step(model, optimizer, session, loaded, weights, device, (epoch, step.number))
        inside = getattr(loaded.inputs.tokens, "waited", 0.0)  # for chunks, which are read while they are used
        waited_inside += inside
        begun += inside
        progress.loss_sum += loss * items
        progress.loss_count += items
        progress.step = step.number + 1
        if progress.step == count:
            progress.seconds += time.perf_counter() - begun
            stop = _end_epoch(folder, session, model, progress, epoch, epochs, rate, display)
            progress.epoch, progress.step, progress.loss_sum, progress.loss_count = epoch + 1, 0, 0.0, 0
        else:
            progress.seconds += time.perf_counter() - begun
            stop = False
        progress.waited = waited_before + ahead.waited + waited_inside
        if time.monotonic() - saved_at >= config.checkpoint_seconds or stop or progress.epoch == epochs:
            _save(folder, session, model, optimizer, progress)
            saved_at = time.monotonic()
        if stop:
            break
    summary = _summarise(session, model, progress)
    folder.write_summary(summary)
    return summary


def _train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    session: Session,
    loaded: Loaded,
    weights: Tensor | None,
    device: torch.device,
    place: tuple[int, int],
) -> tuple[float, int]:
    """One step; returns (loss, training items in it). TrainError names the place where something is not finite."""
    config = session.config
    torch.manual_seed(int(key_path(config.seed, Purpose.DROPOUT, *place)) >> 1)
    rows = torch.from_numpy(np.flatnonzero(np.isin(loaded.items, session.items["train"])))
    model.train()
    inputs = loaded.inputs if device.type == "cpu" else to_device(loaded.inputs, device)
    try:
        with computing_in(session.precision, device):
            logits = model(inputs).logits[rows.to(device)]
    except NotFiniteError:
        raise _diverged("the model's states became NaN or infinite", place) from None
    assert loaded.y is not None
    loss = task_loss(session.task, logits, loaded.y[rows].to(device), None if weights is None else weights.to(device))
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
        f"{what} in epoch {place[0]}, step {place[1]}; the last good checkpoint is kept: try a lower lr, more warmup "
        "or a smaller clip"
    )


def _end_epoch(
    folder: RunFolder,
    session: Session,
    model: GraphModel,
    progress: Progress,
    epoch: int,
    epochs: int,
    rate: float,
    display: Display,
) -> bool:
    """Evaluate, record, keep the best; returns whether to stop early."""
    config, task = session.config, session.task
    row: dict[str, Any] = {"epoch": epoch, "loss": progress.loss_sum / max(progress.loss_count, 1), "lr": rate}
    if (epoch + 1) % config.eval_every == 0 or epoch + 1 == epochs:
        begun = time.perf_counter()
        try:
            row |= evaluate_parts(session, model, ("val", "test"))
        except NotFiniteError:
            raise _diverged("the model's states became NaN or infinite", (epoch, progress.step - 1)) from None
        row["eval_seconds"] = round(time.perf_counter() - begun, 4)
        if is_better(row["val"], progress.best, task.higher_is_better):
            progress.best, progress.best_epoch, progress.test_at_best = row["val"], epoch, row["test"]
            folder.save_best(model.state_dict())
    row["seconds"] = round(progress.seconds, 3)
    folder.append_metrics(row)
    display.epoch(row, progress.best, progress.best_epoch)
    return bool(config.patience) and progress.best_epoch >= 0 and epoch - progress.best_epoch >= config.patience


def is_better(value: float, best: float, higher: bool) -> bool:
    """Whether a validation metric beats the best so far; NaN never does, anything beats nothing."""
    if math.isnan(value):
        return False
    return math.isnan(best) or (value > best if higher else value < best)


def make_model(session: Session, device: torch.device) -> GraphModel:
    """The model for a session, its weights drawn from the run's seed."""
    torch.manual_seed(int(key_path(session.config.seed, Purpose.WEIGHTS)) >> 1)
    return make_graph_model(session.config.model, session.source.facts).to(device)


def choose_device(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise TrainError("--device cuda was asked for, but torch sees no CUDA here; use --device cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def total_epochs(session: Session) -> int:
    return session.config.epochs or (100 if session.mode == "graphs" else 200)


def _save(folder: RunFolder, session: Session, model: nn.Module, optimizer: Any, progress: Progress) -> None:
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "progress": vars(progress).copy(),
        "store": session.store.fingerprint,
        "precision": session.precision,
    }
    folder.save_last(state)


def _restore(folder: RunFolder, session: Session, model: nn.Module, optimizer: Any) -> Progress:
    state = folder.load_last()
    if state is None:
        folder.keep_metrics_before(0)  # a run that was killed before its first checkpoint has rows already
        return Progress()
    if state["store"] != session.store.fingerprint:
        raise TrainError(
            f"the checkpoint in {folder.path} was made from another store (fingerprint {state['store'][:12]}, this one "
            f"is {session.store.fingerprint[:12]}); use that store, or another --run-dir"
        )
    load_weights(model, state["model"], str(folder.last))
    optimizer.load_state_dict(state["optimizer"])
    progress = Progress(**state["progress"])
    folder.keep_metrics_before(progress.epoch)
    return progress


def load_weights(model: nn.Module, weights: dict[str, Tensor], where: str) -> None:
    """Load weights, or say in one line that they belong to another model or store."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise TrainError(f"{where} does not fit this store and model: {first}") from None


def _summarise(session: Session, model: nn.Module, progress: Progress) -> dict[str, Any]:
    import numba

    import gmn_pipeline

    epochs = max(progress.epoch, 1)
    return {
        "metric": session.task.metric,
        "best_epoch": progress.best_epoch,
        "val": progress.best,
        "test": progress.test_at_best,
        "epochs": progress.epoch,
        "seconds": round(progress.seconds, 2),
        "seconds_per_epoch": round(progress.seconds / epochs, 4),
        "waiting_share": round(progress.waited / max(progress.seconds + progress.waited, 1e-9), 4),
        "peak_memory_bytes": peak_memory(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "mode": session.mode,
        "precision": session.precision,
        "seed": session.config.seed,
        "split": session.config.split,
        "store": {"name": session.config.store.name, "fingerprint": session.store.fingerprint},
        "tokens": session.view.settings.as_dict(),
        "versions": {
            "gmn-pipeline": gmn_pipeline.__version__,
            "torch": torch.__version__,
            "numba": numba.__version__,
            "python": platform.python_version(),
        },
    }
