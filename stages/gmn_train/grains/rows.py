"""All rows of a graph from the grains that hold some of them each; the gradient goes back to who holds a row."""

from typing import Any

import torch
from torch import Tensor

from gmn_train.grains.grain import Grain


def gather_rows(x: Tensor, grain: Grain) -> Tensor:
    """x (own rows, d) of every grain to (all rows, d)."""
    out: Tensor = GatherRows.apply(x, grain)  # type: ignore[no-untyped-call]
    return out


class GatherRows(torch.autograd.Function):
    """Forward: rows in grain order. Backward: each grain's gradient of all rows, summed by the grains' tree."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, grain: Grain) -> Tensor:
        ctx.grain = grain
        return grain.gather(x.contiguous(), grain.sizes)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.grain.sum_rows(grad), None
