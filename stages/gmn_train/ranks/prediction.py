"""Scores by several processes: each takes some steps, or some rows of one graph, and all get all scores."""

import numpy as np
import torch

from gmn_pipeline.types import Array, FloatArray
from gmn_train.data.steps import Step
from gmn_train.grains.grain import Grain
from gmn_train.grains.lockstep import Lockstep, share_of
from gmn_train.learning.predictions import predict_steps
from gmn_train.machine.compute import Compute
from gmn_train.model.frame import GraphModel
from gmn_train.ranks.join import gather_arrays
from gmn_train.ranks.team import Team


def predict_together(
    team: Team, model: GraphModel, compute: Compute, steps: list[Step], epoch: int | None
) -> tuple[Array, FloatArray]:
    """The items of all steps and their scores, (R,) and (R, outputs)."""
    if team.sampler.cuts_rows:
        return _predict_slices(team, model, compute, epoch)
    wire = team.wire
    own = steps[slice(*share_of(wire.rank, wire.size, len(steps)))]
    if own:
        items, scores, _ = predict_steps(team.sampler, model, compute, own, epoch)
    else:
        items, scores = np.zeros(0, np.int64), np.zeros((0, model.facts.outputs), np.float32)
    if wire.size == 1:
        return items, scores
    parts = [torch.from_numpy(np.ascontiguousarray(part)) for part in (items.astype(np.int64), scores)]
    items, scores = (gather_arrays(wire, part).numpy() for part in parts)
    return items, scores


def _predict_slices(team: Team, model: GraphModel, compute: Compute, epoch: int | None) -> tuple[Array, FloatArray]:
    """One pass over a graph that is cut into grains."""
    grains = team.load(Step(0), epoch)
    lockstep = Lockstep(team.wire, grains.count)
    sizes = [b - a for a, b in (share_of(g, grains.count, len(grains.items)) for g in range(grains.count))]

    def work(grain: Grain) -> FloatArray:
        with torch.inference_mode(), compute.autocast():
            outputs = model(compute.move(grains.loaded[grain.number - lockstep.first].inputs))
            scores: FloatArray = grain.gather(outputs.logits.float().cpu(), sizes).numpy()
        return scores

    return grains.items, lockstep.run(work, grains.sizes)[0]
