"""The gated scan of a piece of one long sequence, from a given state, as an autograd node."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from gmn_pipeline.types import FloatArray
from gmn_train.model.scan.kernels import CHUNK
from gmn_train.model.scan.numba_scan import ScanInputs, pad_columns, pad_states
from gmn_train.model.scan.piece_kernels import piece_carry, piece_gradients, piece_outputs
from gmn_train.model.tiles.packing import pack_decays, unpack_decays


class Summary:
    """What a piece does to a state that comes in: out = decay * in + end, each (blocks, states, LANES) float64."""

    def __init__(self, decay: FloatArray, end: FloatArray) -> None:
        self.decay, self.end = decay, end


def kernel_inputs(scan: ScanInputs) -> list[Tensor]:
    """u, dt, A2, BC, D, bias and z as the kernels take them."""
    u, dt, A, BC, D, bias, z = (None if t is None else t.detach() for t in scan[:7])
    assert u is not None and dt is not None and A is not None and BC is not None and D is not None  # noqa: PT018
    assert bias is not None and z is not None  # noqa: PT018
    u, dt, D, bias, z = (pad_columns(t) for t in (u, dt, D, bias, z))
    return [u, dt, pack_decays(A), pad_states(BC, A.shape[1]), D, bias, z]


def summarise_piece(scan: ScanInputs) -> Summary:
    """Scan a piece from a state of zero. The decay is exp(A ΣΔ)."""
    inputs = kernel_inputs(scan)
    u, dt, A2, _, _, bias, _ = inputs
    h, kept, out = np.zeros(A2.numel(), _dtype(u)), _no_states(A2), u.new_empty(1, u.shape[1])
    piece_outputs(*[t.numpy() for t in inputs], scan.reverse, True, False, kept.numpy(), h, out.numpy())
    total = softplus(dt + bias).double().sum(0)  # (channels,)
    decay = torch.exp2(A2.double() * total.view(len(A2), 1, -1))
    return Summary(decay.numpy(), h.reshape(A2.shape).astype(np.float64))


def carry_back(scan: ScanInputs, grad_y: Tensor) -> FloatArray:
    """The gradient of the state before a piece where that of the state after it is zero: (blocks, states, LANES).

    grad_y: (rows, channels), of the scan's own outputs.
    """
    _, dt, A2, BC, _, bias, _ = kernel_inputs(scan)
    carried = np.zeros(A2.numel(), _dtype(dt))
    piece_carry(*[t.numpy() for t in (dt, A2, BC, bias)], scan.reverse, pad_columns(grad_y).numpy(), carried)
    return carried.reshape(A2.shape).astype(np.float64)


def scan_piece(scan: ScanInputs, before: FloatArray, after: FloatArray | None = None) -> Tensor:
    """y (rows, channels) from the state `before`. after: the gradient of the state after the piece, for the way back.

    The gradient of `before` is not taken here: `carry_back` has it.
    """
    y: Tensor = PieceScan.apply(scan.reverse, before, after, *scan[:7])  # type: ignore[no-untyped-call]
    return y


class PieceScan(torch.autograd.Function):
    """See `scan_piece`."""

    @staticmethod
    def forward(ctx: Any, reverse: bool, before: FloatArray, after: FloatArray | None, *tensors: Tensor) -> Tensor:
        u, dt, A, BC, D, bias, z = tensors
        inputs = kernel_inputs(ScanInputs(u, dt, A, BC, D, bias, z, torch.empty(0), reverse))
        padded, A2 = inputs[0], inputs[2]
        keep = after is not None
        kept = u.new_empty(-(-len(u) // CHUNK), *A2.shape) if keep else _no_states(A2)
        out, h = torch.empty_like(padded), before.astype(_dtype(u)).reshape(-1)
        piece_outputs(*[t.numpy() for t in inputs], reverse, False, keep, kept.numpy(), h, out.numpy())
        ctx.save_for_backward(*inputs, kept)
        ctx.rest = (reverse, after, A.shape)
        return out[:, : u.shape[1]]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, kept = ctx.saved_tensors
        u, _, A2, BC, _, _, z = inputs
        reverse, after, (width, states) = ctx.rest
        grad_u, grad_dt, grad_z, grad_BC = (torch.empty_like(t) for t in (u, u, z, BC))
        totals = [np.zeros(shape) for shape in (A2.shape, u.shape[1:], u.shape[1:])]
        piece_gradients(
            *[t.numpy() for t in inputs], reverse, kept.numpy(), after.astype(_dtype(u)).reshape(-1),
            *[t.numpy() for t in (pad_columns(grad), grad_u, grad_dt, grad_BC, grad_z)], *totals,
        )  # fmt: skip
        if BC.shape[1] != 2 * states:  # drop the padded states
            grad_BC = grad_BC.view(len(BC), 2, A2.shape[1])[..., :states].flatten(1)
        A, D, bias = (torch.from_numpy(t).to(u.dtype) for t in totals)
        return (
            None, None, None, grad_u[:, :width], grad_dt[:, :width], unpack_decays(A, width, states), grad_BC,
            D[:width], bias[:width], grad_z[:, :width],
        )  # fmt: skip


def _dtype(x: Tensor) -> Any:
    return x.numpy().dtype


def _no_states(A2: Tensor) -> Tensor:
    return A2.new_empty(0, *A2.shape)
