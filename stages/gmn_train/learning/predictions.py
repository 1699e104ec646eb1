"""Scores of a model for the items of a store."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from gmn_pipeline.errors import NotFiniteError
from gmn_pipeline.types import Array, FloatArray
from gmn_train.data.read_ahead import ReadAhead
from gmn_train.data.samplers import Sampler
from gmn_train.data.steps import WHOLE_GRAPH, Step
from gmn_train.machine.compute import Compute
from gmn_train.model.frame import GraphModel

DRAW_EPOCH = 1 << 40
"""Epoch number of the first draw beyond training's, for averaging over several."""

Predicted = dict[str, tuple[FloatArray, Array]]
"""By part, (scores (items, outputs), labels) of its items."""


def draw_epochs(draws: int) -> list[int | None]:
    """The epoch numbers to predict at: evaluation's own draw of repeats, or several to average over."""
    return [None] if draws == 1 else [DRAW_EPOCH + draw for draw in range(draws)]


Together = Callable[[GraphModel, Compute, list[Step], int | None], tuple[Array, FloatArray]]
"""How several processes share out steps: from a model, steps and an epoch to all items and scores."""


def predict_parts(
    sampler: Sampler, model: GraphModel, compute: Compute, parts: Sequence[str], together: Together | None = None
) -> Predicted:
    """Scores and labels of the parts' items. One pass over a whole graph serves all parts."""
    predicted: Predicted = {}
    y = sampler.data.graph.y
    assert y is not None
    for part in parts:
        steps = sampler.evaluation_steps(part)
        if steps != [WHOLE_GRAPH] or not predicted:
            items, scores, _ = predict_items(sampler, model, compute, steps, together=together)
        rows = np.isin(items, sampler.data.items[part])
        predicted[part] = (scores[rows], y[items[rows]])
    return predicted


def predict_items(
    sampler: Sampler,
    model: GraphModel,
    compute: Compute,
    steps: list[Step],
    *,
    embeddings: bool = False,
    together: Together | None = None,
) -> tuple[Array, FloatArray, FloatArray | None]:
    """(items (R,), scores (R, outputs), embeddings (R, width) or None), averaged over `eval_draws` draws.

    NotFiniteError where a score is none: a metric could not be computed of it.
    """
    total: FloatArray | None = None
    draws = draw_epochs(sampler.config.eval_draws)
    for epoch in draws:
        if together is not None:
            model.eval()
            (items, scores), hidden = together(model, compute, steps, epoch), None
        else:
            items, scores, hidden = predict_steps(sampler, model, compute, steps, epoch, embeddings)
        total = scores if total is None else total + scores
    assert total is not None
    scores, targets = total / len(draws), sampler.data.trained_on.y
    if (wrong := int((~np.isfinite(scores)).sum())) > 0:
        raise NotFiniteError(
            f"{wrong:,} of {scores.size:,} scores are NaN or infinite: the model's weights are no good"
        )
    return items, scores if targets is None else targets.invert(scores), hidden


def predict_steps(
    sampler: Sampler,
    model: GraphModel,
    compute: Compute,
    steps: list[Step],
    epoch: int | None,
    embeddings: bool = False,
) -> tuple[Array, FloatArray, FloatArray | None]:
    """`predict_items` at one draw."""
    model.eval()
    items, scores, hidden = [], [], []
    ahead = ReadAhead(steps, lambda step: sampler.load(step, epoch), threads=sampler.config.loader_threads)
    with torch.inference_mode():
        for _, loaded in ahead:
            with compute.autocast():
                outputs = model(compute.move(loaded.inputs))
            items.append(loaded.items)
            scores.append(outputs.logits.float().cpu().numpy())
            if embeddings:
                hidden.append(outputs.embeddings.float().cpu().numpy())
    joined = np.concatenate(hidden) if embeddings else None
    return np.concatenate(items), np.concatenate(scores), joined
