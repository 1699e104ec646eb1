"""Depthwise causal convolution + SiLU along sequences, in both directions and with the scan's borders.

On CPU one fused kernel each way; on CUDA causal_conv1d for equal lengths where it is installed; otherwise shifted sums
in torch. Forward and backward at (2048, 17, 128), 4 taps: see tests/benchmarks/train/bench_bimamba.py.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import silu

from gmn_pipeline.errors import ModelError
from gmn_train.machine.threads import run_tasks
from gmn_train.model.layers.conv_kernels import conv_gradients, conv_outputs
from gmn_train.model.scan.checks import check_finite, check_seq_ptr
from gmn_train.model.scan.numba_scan import pad_columns
from gmn_train.model.scan.plan import Share, plan_tasks


def causal_conv_silu(
    x: Tensor, weight: Tensor, bias: Tensor, *, seq_ptr: Tensor | None = None, reverse: bool = False
) -> Tensor:
    """silu(bias + Σ_k weight[:, k] x[t - (taps - 1 - k)]), of x's shape; in reverse, x[t + ...].

    Args:
        x: (batch, length, channels); or packed (total, channels) with `seq_ptr` (sequences + 1,).
        weight: (channels, taps), the last tap for the row itself.
        bias: (channels,).

    Raises:
        ModelError: shapes, types or borders do not fit, or an input is not finite.
    """
    dims = 3 if seq_ptr is None else 2
    channels = x.shape[-1]
    if x.dim() != dims or weight.dim() != 2 or weight.shape[0] != channels or tuple(bias.shape) != (channels,):
        raise ModelError(
            f"causal_conv_silu: x {tuple(x.shape)}, weight {tuple(weight.shape)}, bias {tuple(bias.shape)}; "
            "expected (batch, length, channels), or packed (total, channels) with seq_ptr, "
            "(channels, taps) and (channels,)"
        )
    if not x.is_floating_point() or {weight.dtype, bias.dtype} != {x.dtype} or weight.shape[1] < 1:
        raise ModelError(
            f"causal_conv_silu: x is {x.dtype}, weight {weight.dtype} with {weight.shape[1]} taps, "
            f"bias {bias.dtype}; expected one floating type and at least one tap"
        )
    if seq_ptr is None:
        ptr = torch.arange(x.shape[0] + 1) * x.shape[1]
    else:
        ptr = check_seq_ptr(seq_ptr, len(x))
    check_finite(x=x, weight=weight, bias=bias)
    return conv_rows(x.flatten(0, -2), weight, bias, ptr, reverse).view(x.shape)


def conv_rows(x: Tensor, weight: Tensor, bias: Tensor, seq_ptr: Tensor, reverse: bool) -> Tensor:
    """The same on checked packed rows, by whatever is fastest on x's device."""
    if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64):
        out: Tensor = FusedConv.apply(x, weight, bias, seq_ptr, reverse)  # type: ignore[no-untyped-call]
        return out
    lengths = seq_ptr.diff()
    equal = x.numel() > 0 and int(lengths.min()) == int(lengths.max())
    if x.device.type == "cuda" and equal and weight.shape[1] in (2, 3, 4) and load_causal_conv1d() is not None:
        return conv_batch(x, weight, bias, seq_ptr, reverse)
    return shifted_sum(x, weight, bias, seq_ptr, reverse)


def conv_batch(x: Tensor, weight: Tensor, bias: Tensor, seq_ptr: Tensor, reverse: bool) -> Tensor:
    """Sequences of one length by causal_conv1d, which takes (batch, channels, length)."""
    batch = x.view(len(seq_ptr) - 1, -1, x.shape[1])  # (sequences, length, channels)
    batch = (batch.flip(1) if reverse else batch).transpose(1, 2)  # (sequences, channels, length)
    out: Tensor = load_causal_conv1d()(batch, weight, bias, activation="silu").transpose(1, 2)
    return (out.flip(1) if reverse else out).reshape(x.shape)


def load_causal_conv1d() -> Any:
    """causal_conv1d's function, or None where it is not installed: imported late, it needs CUDA."""
    try:
        from causal_conv1d import causal_conv1d_fn
    except ImportError:
        return None
    return causal_conv1d_fn


def shifted_sum(x: Tensor, weight: Tensor, bias: Tensor, seq_ptr: Tensor, reverse: bool) -> Tensor:
    """The definition in torch, on any device: one shifted and masked copy of x per tap."""
    ptr = seq_ptr.to(x.device)
    rows = torch.arange(len(x), device=x.device)
    sequence = torch.searchsorted(ptr, rows, right=True) - 1  # (total,)
    before = ptr[sequence + 1] - 1 - rows if reverse else rows - ptr[sequence]  # (total,) rows of the sequence before t
    taps = weight.shape[1]
    p = bias.expand_as(x)
    for back in range(taps):
        source = (rows + back if reverse else rows - back).clamp(0, max(len(x) - 1, 0))
        p = p + weight[:, taps - 1 - back] * x[source] * (before >= back).unsqueeze(1)
    return silu(p)


class FusedConv(torch.autograd.Function):
    """Autograd node around the conv kernels; cut into tasks as the scan is, so equally deterministic."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, seq_ptr: Tensor, reverse: bool) -> Tensor:
        x, taps, bias = pad_columns(x), pad_columns(weight.T), pad_columns(bias)  # taps (taps, channels)
        out = torch.empty_like(x)
        ptr = seq_ptr.numpy()
        arrays = [a.detach().numpy() for a in (x, taps, bias)]

        def work(task: Share) -> None:
            conv_outputs(*arrays, ptr, reverse, *task[:4], out.numpy())

        run_tasks(work, plan_tasks(ptr, x.shape[1])[0])
        ctx.save_for_backward(x, taps, bias)
        ctx.layout = (ptr, reverse, len(weight))
        return out[:, : len(weight)]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        x, taps, bias = ctx.saved_tensors
        ptr, reverse, width = ctx.layout
        tasks, ranges, _ = plan_tasks(ptr, x.shape[1])
        grad_x = torch.empty_like(x)
        totals = np.empty((ranges, len(taps) + 1, x.shape[1]))  # (ranges, taps and bias, channels) float64
        arrays = [a.detach().numpy() for a in (x, taps, bias)]
        dy = pad_columns(grad_out).numpy()

        def work(task: Share) -> None:
            conv_gradients(*arrays, ptr, reverse, *task[:4], dy, grad_x.numpy(), totals[task.range_index])

        run_tasks(work, tasks)
        *grad_taps, grad_bias = torch.from_numpy(totals.sum(0)[:, :width]).to(x.dtype)
        return grad_x[:, :width], torch.stack(grad_taps, 1), grad_bias, None, None
