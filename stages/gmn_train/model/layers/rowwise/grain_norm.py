"""BatchNorm over the rows of all grains of a step: each sums its own rows, and the sums are summed by the grains' tree.

On the CPU a grain's sums are float64 and in row order, so neither threads nor processes change a bit.
"""

from typing import Any

import torch
from torch import Tensor

from gmn_train.grains.grain import Grain
from gmn_train.machine.threads import run_tasks
from gmn_train.model.layers.rowwise.norm_kernels import (
    batch_norm_gradient,
    batch_norm_sums,
    column_squares,
    column_sums,
    scale_rows,
)
from gmn_train.model.layers.rowwise.row_sums import sum_over_ranges
from gmn_train.model.message_passing.edge_order import row_ranges
from gmn_train.model.scan.checks import has_kernels


class GrainBatchNorm(torch.autograd.Function):
    """The normalised rows, and the mean, variance and number of all grains' rows; gradients through the first only."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, grain: Grain
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        x = x.contiguous()
        sums = grain.sum(torch.cat([_sums(x), torch.tensor([float(len(x))], dtype=torch.float64, device=x.device)]))
        rows = int(sums[-1])
        mean = sums[:-1] / rows
        variance = grain.sum(_squares(x, mean)) / rows
        scale = 1 / torch.sqrt(variance + eps)
        factor = weight.detach() * scale
        shift = bias.detach() - mean * factor
        ctx.save_for_backward(x, weight)
        ctx.rest = (mean, scale, rows, grain)
        statistics = mean.to(x.dtype), variance.to(x.dtype)
        ctx.mark_non_differentiable(*statistics)
        return _scaled(x, factor.to(x.dtype), shift.to(x.dtype)), *statistics, rows

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        mean, scale, rows, grain = ctx.rest
        grad = grad.contiguous()
        own = _gradient_sums(x, grad, mean, scale)  # (2, d): along the normalised rows, and plain
        means = grain.sum(own) / rows
        terms = [t.to(x.dtype) for t in (mean, scale, weight.detach() * scale, means[0], means[1])]
        return _gradient(x, grad, *terms), own[0].to(x.dtype), own[1].to(x.dtype), None, None


def _sums(x: Tensor) -> Tensor:
    if not has_kernels(x):
        return x.double().sum(0)
    array = x.detach().numpy()
    return torch.from_numpy(sum_over_ranges(len(x), tuple(x.shape[1:]), lambda r, t: column_sums(array, *r, t)))


def _squares(x: Tensor, mean: Tensor) -> Tensor:
    if not has_kernels(x):
        return (x.double() - mean).square().sum(0)
    array, at = x.detach().numpy(), mean.numpy()
    return torch.from_numpy(sum_over_ranges(len(x), tuple(x.shape[1:]), lambda r, t: column_squares(array, at, *r, t)))


def _scaled(x: Tensor, factor: Tensor, shift: Tensor) -> Tensor:
    if not has_kernels(x):
        return x * factor + shift
    out = torch.empty_like(x)
    arrays = [a.detach().numpy() for a in (x, factor, shift)]
    run_tasks(lambda r: scale_rows(*arrays, *r, out.numpy()), row_ranges(len(x)))
    return out


def _gradient_sums(x: Tensor, grad: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    if not has_kernels(x):
        return torch.stack([(grad * ((x - mean) * scale)).sum(0), grad.double().sum(0)])
    arrays = [a.detach().numpy() for a in (x, grad, mean, scale)]
    shape = (2, x.shape[1])
    return torch.from_numpy(sum_over_ranges(len(x), shape, lambda r, t: batch_norm_sums(*arrays, *r, t)))


def _gradient(x: Tensor, grad: Tensor, *terms: Tensor) -> Tensor:
    if not has_kernels(x):
        mean, scale, factor, along, plain = terms
        return factor * (grad - plain - (x - mean) * scale * along)
    out = torch.empty_like(x)
    arrays = [a.detach().numpy() for a in (x, grad, *terms)]
    run_tasks(lambda r: batch_norm_gradient(*arrays, *r, out.numpy()), row_ranges(len(x)))
    return out
