"""The task's metric on the parts of a split."""

import math
from collections.abc import Sequence

from gmn_pipeline.metrics import METRICS
from gmn_train.data.samplers import Sampler
from gmn_train.learning.link_ranking import rank_parts
from gmn_train.learning.metrics import evaluate_metric
from gmn_train.learning.predictions import Predicted, Together, predict_parts
from gmn_train.machine.compute import Compute
from gmn_train.model.frame import GraphModel


def evaluate_parts(
    sampler: Sampler,
    model: GraphModel,
    compute: Compute,
    parts: Sequence[str],
    predicted: Predicted | None = None,
    together: Together | None = None,
) -> dict[str, float]:
    """By part, the metric of its items: of their scores, or of the ranks of their positive pairs.

    predicted: what `predict_parts` gave for these parts, if it is at hand. together: see `predict_parts`.
    """
    task = sampler.data.task
    if METRICS[task.metric].ranks_links:
        return rank_parts(sampler, model, compute, parts)
    predicted = predict_parts(sampler, model, compute, parts, together) if predicted is None else predicted
    return {part: evaluate_metric(task, scores, y) for part, (scores, y) in predicted.items()}


def is_better(value: float, best: float, higher: bool) -> bool:
    """Whether a validation metric beats the best so far; NaN never does, anything beats nothing."""
    if math.isnan(value):
        return False
    return math.isnan(best) or (value > best if higher else value < best)
