"""The loss of each kind of task. Unknown labels (-1, NaN) never count."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gmn_pipeline.task import Task
from gmn_pipeline.types import Array

ROW = 1024


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
        if not known.any():
            return 0 * logits.sum()
        each = functional.cross_entropy(logits[known], y[known], weight=weights, reduction="none")
        return sum_in_order(each) / (known.sum() if weights is None else sum_in_order(weights[y[known]]))
    if task.kind == "binary":
        known = y >= 0
        target = y[known].to(logits.dtype)
        weight = None if weights is None else weights.to(logits.device)[y[known]]
        each = functional.binary_cross_entropy_with_logits(logits[known, 0], target, weight=weight, reduction="none")
        total = sum_in_order(weight) if weight is not None else known.sum()
        return sum_in_order(each) / total.clamp(min=1e-12)
    known = ~torch.isnan(y)
    target = torch.where(known, y, torch.zeros_like(y)).to(logits.dtype)
    if task.kind == "multilabel":
        each = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    else:
        each = (logits - target).abs()
    return sum_in_order((each * known).flatten()) / known.sum().clamp(min=1)


def sum_in_order(x: Tensor) -> Tensor:
    """The sum of x (n,), the same bits for any number of threads: torch cuts a long sum by threads, a row never."""
    padded = functional.pad(x, (0, -len(x) % ROW))
    return padded.view(-1, ROW).sum(1).sum()
