"""What a run will cost, from a few timed steps on a copy of its model. Nothing of the run itself changes."""

import copy
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.console.machine import peak_memory
from gmn_pipeline.errors import TrainError
from gmn_train.data.samplers import Loaded, Sampler, make_sampler
from gmn_train.data.steps import WHOLE_GRAPH, Step
from gmn_train.learning.averaging import WeightAverage
from gmn_train.learning.optimizer import make_optimizer

if TYPE_CHECKING:
    from gmn_train.train import Training

FEW_NODES = 4096
"""A graph of no more nodes is timed whole; of a larger one, this many nodes, and the rest is a matter of proportion."""
TIMED_SECONDS, TIMED_STEPS = 1.0, 3
FORWARD = 0.35
"""Share of a training step that evaluation takes for as many items."""
FLOATS_PER_NODE = 20
"""Activations that a node layer keeps per node and feature, beside its tokens'."""


@dataclass(frozen=True)
class RunCost:
    """Seconds and bytes, within a factor of two or so."""

    seconds_per_epoch: float
    seconds: float
    """Of all epochs."""
    memory_bytes: int


def estimate_run(training: "Training", *, measured: float | None = None) -> RunCost | None:
    """Time some steps. measured: seconds per epoch of an earlier sitting, if known. None where a step fails."""
    config = training.config
    assert config.epochs is not None
    if measured is not None:
        return RunCost(measured, measured * config.epochs, peak_memory())
    try:
        seconds, activations = _time_steps(training)
    except TrainError:  # the run itself will tell
        return None
    sampler = training.sampler
    steps = len(sampler.training_steps(0))
    evaluated = sum(len(sampler.evaluation_steps(part)) for part in ("val", "test"))
    if sampler.evaluation_steps("val") == [WHOLE_GRAPH]:
        evaluated = 1  # one pass serves both parts
    share = FORWARD * evaluated * config.eval_draws / (config.eval_every or 1)
    each = seconds * (steps + share)
    weights = sum(p.numel() * p.element_size() for p in training.model.parameters())
    return RunCost(each, each * config.epochs, peak_memory() + activations + 4 * weights)


def _time_steps(training: "Training") -> tuple[float, int]:
    """(seconds, bytes of activations) of one training step."""
    from gmn_train.train import train_step

    model = copy.deepcopy(training.model)
    trial = replace(
        training, model=model, average=WeightAverage(model, 0, 1), optimizer=make_optimizer(model, training.config)
    )
    sampler, step = _probe(training)
    loaded = sampler.load(step, 0)
    held = _Held()
    with torch.autograd.graph.saved_tensors_hooks(held.keep, held.give):
        train_step(trial, loaded, 0.0, (0, 0))  # compiles what is not compiled yet, so it is not timed
    begun, times = time.perf_counter(), list[float]()
    while len(times) < TIMED_STEPS and time.perf_counter() - begun < TIMED_SECONDS:
        before = time.perf_counter()
        train_step(trial, sampler.load(step, 0), 0.0, (0, 0))
        times.append(time.perf_counter() - before)
    scale = relative_size(training.sampler, step, loaded)
    return min(times) * scale, _activations(training.sampler, int(held.bytes * scale))


def _probe(training: "Training") -> tuple[Sampler, Step]:
    """A sampler of its own, whose waiting no clock counts, and a step that stands for the run's."""
    config, data, step = training.config, training.sampler.data, training.sampler.training_steps(0)[0]
    if step is WHOLE_GRAPH and data.graph.num_nodes > FEW_NODES:
        return make_sampler(data, replace(config, mode="batch")), Step(0, data.items["train"][: FEW_NODES // 4])
    return make_sampler(data, config), step


def relative_size(sampler: Sampler, step: Step, loaded: Loaded) -> float:
    """How many times the timed step the run's own step is, in the mean of an epoch."""
    graph, steps = sampler.data.graph, sampler.training_steps(0)
    if steps[0] is WHOLE_GRAPH:
        return 1.0 if step is WHOLE_GRAPH else graph.num_nodes / max(loaded.inputs.targets, 1)
    if graph.graph_ptr is None:
        return 1.0
    sizes = np.diff(graph.graph_ptr)  # a step has as many graphs as any other, but not as many nodes
    return float(np.mean([sizes[s.units].sum() for s in steps]) / max(sizes[step.units].sum(), 1))


def _activations(sampler: Sampler, held_bytes: int) -> int:
    """Bytes of activations; where tokens are cut into chunks, what the budget allows instead of what was found."""
    if sampler.chunk_nodes is None:
        return held_bytes
    model, graph = sampler.config.model, sampler.data.graph
    nodes = graph.num_nodes * model.width * max(model.node_layers, 1) * FLOATS_PER_NODE * 4
    return min(held_bytes, int(sampler.config.memory_budget * 1e9) + nodes)


class _Held:
    """Counts the bytes of the tensors that a forward pass keeps for the backward one, each once."""

    def __init__(self) -> None:
        self.bytes = 0
        self._seen: set[int] = set()

    def keep(self, tensor: Tensor) -> Tensor:
        address = tensor.untyped_storage().data_ptr()
        if address not in self._seen:
            self._seen.add(address)
            self.bytes += tensor.untyped_storage().nbytes()
        return tensor

    def give(self, tensor: Tensor) -> Tensor:
        return tensor
