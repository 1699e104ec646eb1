"""The loss of each kind of task. Unknown labels (-1, NaN) never count."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gmn_pipeline.task import Task
from gmn_pipeline.types import Array


def class_weights(task: Task, y: Array) -> Tensor | None:
    """Weights of the classes where the task asks for them: the share of items that are not of the class.

    As PATTERN's benchmark has it: a class of few items weighs nearly 1, one of nearly all weighs nearly 0.
    """
    if not task.class_weighted or task.kind not in ("multiclass", "binary"):
        return None
    known = y[y >= 0]
    share = np.bincount(known, minlength=task.classes) / max(len(known), 1)
    return torch.tensor((1 - share) * (share > 0), dtype=torch.float32)


def task_loss(task: Task, logits: Tensor, y: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean loss over the known labels of `y`; logits (items, outputs). Zero where no label is known."""
    if task.kind == "multiclass":
        known = y >= 0
        return functional.cross_entropy(logits[known], y[known], weight=weights) if known.any() else 0 * logits.sum()
    if task.kind == "binary":
        known = y >= 0
        target = y[known].to(logits.dtype)
        weight = None if weights is None else weights.to(logits.device)[y[known]]
        loss = functional.binary_cross_entropy_with_logits(logits[known, 0], target, weight=weight, reduction="sum")
        total = weight.sum() if weight is not None else known.sum()
        return loss / total.clamp(min=1e-12)
    known = ~torch.isnan(y)
    target = torch.where(known, y, torch.zeros_like(y)).to(logits.dtype)
    if task.kind == "multilabel":
        each = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    else:
        each = (logits - target).abs()
    return (each * known).sum() / known.sum().clamp(min=1)
