"""The processes of a run at work: each loads and computes its grains of a step, and all get the whole gradient."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from gmn_pipeline.counter_random import Purpose, key_path
from gmn_pipeline.errors import TrainError
from gmn_pipeline.task import Task
from gmn_pipeline.types import IntArray
from gmn_train.data.inputs.slices import SlicedGraph
from gmn_train.data.samplers import Loaded, ReadsStore, Sampler
from gmn_train.data.steps import Step
from gmn_train.grains.grain import Grain
from gmn_train.grains.lockstep import Lockstep, share_of
from gmn_train.grains.tree_sum import TreeSum
from gmn_train.grains.wire import Wire
from gmn_train.learning.losses import sum_in_order, task_loss
from gmn_train.model.frame import GraphModel
from gmn_train.model.layers.rowwise.norms import BatchNorm
from gmn_train.ranks.join import agree, join_others

if TYPE_CHECKING:
    from gmn_train.train import Training

SMALLEST_SLICE = 16
"""Rows of a graph that are worth a grain."""


@dataclass(frozen=True)
class Grains:
    """What this process computes of one step."""

    count: int
    """Grains of all processes."""
    sizes: Sequence[int] | None
    """Rows of each of them where one graph is cut; None where each has its own graphs or nodes."""
    items: IntArray
    """The items of all grains, in order, where one graph is cut."""
    loaded: list[Loaded]


class Team:
    """See the module."""

    def __init__(self, wire: Wire, grains: int, sampler: Sampler, model: GraphModel, device: torch.device) -> None:
        self.wire, self.grains, self.sampler = wire, grains, sampler
        _check(wire, grains, sampler, model, device)

    @classmethod
    def of(cls, sampler: Sampler, model: GraphModel, device: torch.device) -> "Team | None":
        """The team of a run's settings; None for a plain run. Raises TrainError where the model cannot be cut."""
        grains = sampler.config.grains
        if grains is None:
            return None
        return cls(join_others(), grains, sampler, model, device)

    def load(self, step: Step, epoch: int | None) -> Grains:
        """This process's grains of a step."""
        if self.sampler.cuts_rows:
            return self._load_slices(epoch)
        assert step.units is not None
        count = min(self.grains, len(step.units))
        lo, hi = share_of(self.wire.rank, self.wire.size, count)
        shares = [slice(*share_of(grain, count, len(step.units))) for grain in range(lo, hi)]
        parts = [Step(step.number, step.units[share]) for share in shares]
        return Grains(count, None, step.units, [self.sampler.load(part, epoch) for part in parts])

    def _load_slices(self, epoch: int | None) -> Grains:
        sampler = self.sampler
        assert isinstance(sampler, ReadsStore)
        graph, nodes = SlicedGraph(sampler.source, epoch), sampler.graph.num_nodes
        count = max(1, min(self.grains, nodes // SMALLEST_SLICE))
        lo, hi = share_of(self.wire.rank, self.wire.size, count)
        pairs, items = sampler.graph.pairs, graph.ids
        if pairs is not None:
            items = np.arange(len(pairs))
        loaded = []
        for grain in range(lo, hi):
            own = items[slice(*share_of(grain, count, len(items)))]
            inputs = graph.inputs(
                *share_of(grain, count, nodes),
                chunk_nodes=sampler.chunk_nodes,
                keep_tokens=sampler.keeps_tokens,
                pairs=None if pairs is None else pairs[own],
                clock=sampler.clock,
            )
            loaded.append(sampler.labelled(inputs, own))
        sizes = [b - a for a, b in (share_of(grain, count, nodes) for grain in range(count))]
        return Grains(count, sizes, items, loaded)

    def differentiate(self, training: "Training", grains: Grains, place: tuple[int, int]) -> tuple[float, int]:
        """Set the gradients of a step; returns (loss, training items)."""
        config, model, compute, data = training.config, training.model, training.compute, self.sampler.data
        parameters = [p for p in model.parameters() if p.requires_grad]
        lockstep, tree = Lockstep(self.wire, grains.count), TreeSum()
        device = compute.device

        def work(grain: Grain) -> None:
            torch.manual_seed(int(key_path(config.seed, Purpose.DROPOUT, *place, grain.number)) >> 1)
            loaded = grains.loaded[grain.number - lockstep.first]
            rows = torch.from_numpy(np.flatnonzero(np.isin(loaded.items, data.items["train"])))
            with compute.autocast():
                logits = model(compute.move(loaded.inputs)).logits[rows.to(device)]
            assert loaded.y is not None
            y = loaded.y[rows].to(device)
            weight = loss_weight(data.task, y, training.class_weights)
            share = weight / grain.gather(weight.view(1)).sum().clamp(min=1e-12)
            loss = task_loss(data.task, logits, y, training.class_weights) * share.to(logits.dtype)
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
            facts = torch.stack([loss.detach(), loss.new_tensor(float(len(rows)))])
            tree.add_leaf(grain.number, torch.cat([*(g.reshape(-1) for g in gradients), facts]))

        lockstep.run(work, grains.sizes)
        size = sum(p.numel() for p in parameters) + 2
        flat = lockstep.sum_everywhere(tree, torch.empty(size, dtype=parameters[0].dtype, device=device))
        for parameter, grad in zip(parameters, flat[:-2].split([p.numel() for p in parameters]), strict=True):
            parameter.grad = grad.view_as(parameter)
        self._share_statistics(lockstep, model)
        return float(flat[-2]), int(flat[-1])

    def _share_statistics(self, lockstep: Lockstep, model: nn.Module) -> None:
        """Processes without a grain in this step learn the running statistics from one that had some."""
        idle = [rank for rank, (lo, hi) in enumerate(lockstep.shares) if lo == hi]
        busy = next(rank for rank, (lo, hi) in enumerate(lockstep.shares) if lo < hi)
        buffers = [buffer.view(-1) for buffer in model.buffers()]
        if self.wire.rank == busy and idle:
            self.wire.swap(dict.fromkeys(idle, buffers), {})
        elif self.wire.rank in idle:
            self.wire.swap({}, {busy: buffers})

    def facts(self) -> dict[str, int]:
        """For the run's summary."""
        return {"processes": self.wire.size, "grains": self.grains, "sent_bytes": self.wire.sent}

    def agree(self, asked: bool) -> bool:
        """Whether any process asks; a process that is told to end tells the others."""
        return asked if self.wire.size == 1 else agree(self.wire, asked)


def loss_weight(task: Task, y: Tensor, weights: Tensor | None) -> Tensor:
    """What a mean loss over `y` is a mean of: the labels that are known, or their classes' weights. float64."""
    if task.kind not in ("multiclass", "binary"):
        return (~torch.isnan(y)).sum().double()
    known = y[y >= 0]
    return known.new_tensor(len(known)).double() if weights is None else sum_in_order(weights[known]).double()


def _check(wire: Wire, grains: int, sampler: Sampler, model: GraphModel, device: torch.device) -> None:
    """TrainError where a run cannot be cut this way."""
    name = sampler.config.model.name
    if wire.size > grains:
        raise TrainError(f"{wire.size} processes are more than the run's {grains} grains; start at most {grains}")
    slices = sampler.data.graph.num_nodes // SMALLEST_SLICE
    if sampler.cuts_rows and slices < wire.size:
        raise TrainError(f"the graph is too small for {wire.size} processes; start at most {max(slices, 1)}")
    if sampler.cuts_rows and not model.takes_slices:
        raise TrainError(f"model {name} needs all nodes at once, so mode full cannot cut it; use mode batch")
    foreign = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if any(not isinstance(m, BatchNorm) for m in foreign):
        raise TrainError(f"model {name} has BatchNorms of its own, which do not see other grains; use model.norm=layer")
    if device.type == "cuda" and grains != wire.size:
        raise TrainError(f"on CUDA every process computes one grain; use grains={wire.size}, or --device cpu")
