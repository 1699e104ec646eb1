"""A BiMamba layer as one autograd node on tiles: it saves its input and nothing else.

Sequences are cut into at most RANGES ranges, which depends on the shapes alone; threads take ranges, and weight
gradients are summed in range order. So neither the number of threads nor the size of a tile changes a bit of the
result.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.types import IntArray
from gmn_train.machine.threads import run_tasks
from gmn_train.model.scan.kernels import LN2
from gmn_train.model.scan.plan import chunk_pointers, cut_rows
from gmn_train.model.simd.vectors import LANES
from gmn_train.model.tiles.layer_gradients import Totals, layer_gradients
from gmn_train.model.tiles.layer_kernels import Weights, layer_outputs
from gmn_train.model.tiles.long_kernels import long_gradients, long_outputs
from gmn_train.model.tiles.packing import Packed
from gmn_train.model.tiles.products import ROWS

TILE_ROWS = 120
"""Rows of a tile at most, if its first sequence is not longer: 5 kB each at width 64 on the way back, beside 0.6 MB of
weights, sums and tape. Between 64 and 240 rows the time changes by 3%."""
LONGEST = 512
"""Rows of a sequence that are still taken as one tile."""
RANGES = 32
ROWS_PER_RANGE = 256
PIECE = 8192


def run_layer(
    x: Tensor,
    packed: Packed,
    seq_ptr: Tensor,
    eps: float,
    *,
    only_last: bool,
    residual: bool,
    half: bool = False,
    again: bool = False,
) -> Tensor:
    """The layer's update of rows x (total, d), or of each sequence's last row only; residual: with x added.

    half: products of bfloat16. again: only the gradient is wanted, the values are zeros.
    """
    out: Tensor = TileLayer.apply(seq_ptr.numpy(), eps, only_last, residual, half, again, x, *packed)  # type: ignore[no-untyped-call]
    return out


def run_long_layer(x: Tensor, packed: Packed, seq_ptr: Tensor, eps: float, *, half: bool = False) -> Tensor:
    """The layer's update of rows x (total, d) of sequences of any length, without x added."""
    out: Tensor = LongLayer.apply(seq_ptr.numpy(), eps, half, x, *packed)  # type: ignore[no-untyped-call]
    return out


class LongLayer(torch.autograd.Function):
    """The same for sequences longer than a tile: see `long_kernels`."""

    @staticmethod
    def forward(ctx: Any, ptr: IntArray, eps: float, half: bool, x: Tensor, *packed: Tensor) -> Tensor:
        x = x.contiguous()
        weights, keep = kernel_weights(packed), any(ctx.needs_input_grad)
        tasks = direction_tasks(ptr, len(weights.states))
        kept_ptr = chunk_pointers(ptr)
        kept = x.new_empty(len(weights.states), int(kept_ptr[-1]) if keep else 0, *packed[5].shape[1:])
        parts = x.new_empty(len(weights.states), *x.shape)  # (k, total, d)
        rows_x = x.detach().numpy()

        def work(task: tuple[int, int, int, int]) -> None:
            _, lo, hi, k = task
            long_outputs(rows_x, eps, ptr, lo, hi, k, half, weights, keep, kept_ptr, kept[k].numpy(), parts[k].numpy())

        run_tasks(work, tasks)
        ctx.save_for_backward(x, kept, *packed)
        ctx.layout = (ptr, kept_ptr, eps, half)
        return parts[0] if len(parts) == 1 else parts[0].add_(parts[1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        x, kept, *packed = ctx.saved_tensors
        ptr, kept_ptr, eps, half = ctx.layout
        weights, shapes = kernel_weights(packed), [tuple(p.shape) for p in packed]
        tasks = direction_tasks(ptr, len(weights.states))
        totals, parts = make_totals(shapes, len(tasks)), x.new_zeros(len(weights.states), *x.shape)
        rows_x, dy = x.detach().numpy(), grad_out.contiguous().numpy()

        def work(task: tuple[int, int, int, int]) -> None:
            number, lo, hi, k = task
            mine = Totals(*(t[number] for t in totals))
            arrays = (kept_ptr, kept[k].numpy(), dy, parts[k].numpy())
            long_gradients(rows_x, eps, ptr, lo, hi, k, half, weights, *arrays, mine)

        run_tasks(work, tasks)
        grads = unpack_totals([torch.from_numpy(t) for t in sum_ranges(totals)], shapes, x.dtype)
        return (None, None, None, parts[0] if len(parts) == 1 else parts[0].add_(parts[1]), *grads)


def direction_tasks(ptr: IntArray, directions: int) -> list[tuple[int, int, int, int]]:
    """(number, first sequence, last, direction) of every range of sequences and direction."""
    ranges = [(lo, hi, k) for lo, hi in cut_rows(ptr, ROWS_PER_RANGE, RANGES) for k in range(directions)]
    return [(number, *task) for number, task in enumerate(ranges)]


class TileLayer(torch.autograd.Function):
    """See the module."""

    @staticmethod
    def forward(
        ctx: Any,
        ptr: IntArray,
        eps: float,
        only_last: bool,
        residual: bool,
        half: bool,
        again: bool,
        x: Tensor,
        *packed: Tensor,
    ) -> Tensor:
        x = x.contiguous()
        rows = len(ptr) - 1 if only_last else len(x)
        out = (x.new_zeros if again else x.new_empty)(rows, x.shape[1])
        weights, rows_x, rows_out = kernel_weights(packed), x.detach().numpy(), out.numpy()
        tile_rows = rows_per_tile(ptr)

        def work(task: tuple[int, int]) -> None:
            layer_outputs(rows_x, eps, ptr, *task, tile_rows, only_last, residual, half, weights, rows_out)

        if not again:
            run_tasks(work, cut_rows(ptr, ROWS_PER_RANGE, RANGES))
        ctx.save_for_backward(x, *packed)
        ctx.layout = (ptr, eps, only_last, residual, half)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        x, *packed = ctx.saved_tensors
        ptr, eps, only_last, residual, half = ctx.layout
        grad_x, ranges = torch.empty_like(x), cut_rows(ptr, ROWS_PER_RANGE, RANGES)
        shapes = [tuple(p.shape) for p in packed]
        totals = make_totals(shapes, len(ranges))
        weights = kernel_weights(packed)
        arrays = [a.detach().numpy() for a in (grad_out.contiguous(), grad_x)]
        rows_x, tile_rows = x.detach().numpy(), rows_per_tile(ptr)

        def work(task: tuple[int, tuple[int, int]]) -> None:
            number, (lo, hi) = task
            mine = Totals(*(t[number] for t in totals))
            layer_gradients(rows_x, eps, ptr, lo, hi, tile_rows, only_last, residual, half, weights, *arrays, mine)

        run_tasks(work, list(enumerate(ranges)))
        sums = [torch.from_numpy(t) for t in sum_ranges(totals)]
        grads = unpack_totals(sums, shapes, x.dtype)
        return (None, None, None, None, None, None, grad_x, *grads)


def kernel_weights(packed: Sequence[Tensor]) -> Weights:
    """Arrays of the packed weights, and of those transposed that the way back needs."""
    norm, inputs, states, up, outputs, A2, conv, D, dt_bias = (p.detach().contiguous() for p in packed)
    up_back = torch.nn.functional.pad(up.transpose(1, 2), (0, -up.shape[1] % LANES))
    tensors = (
        norm, inputs, inputs.T, states, states.transpose(1, 2), up, up_back, outputs, outputs.T, A2,
        conv[:, :-1], conv[:, -1], D, dt_bias,
    )  # fmt: skip
    return Weights(*(t.contiguous().numpy() for t in tensors))


def rows_per_tile(ptr: IntArray) -> int:
    """At most TILE_ROWS. A product takes ROWS rows at a time: as many sequences of equal length leave none over."""
    longest = int(np.diff(ptr).max())
    sequences = max(TILE_ROWS // max(longest, 1), 1)
    return longest * (sequences // ROWS * ROWS) or TILE_ROWS


def make_totals(shapes: list[tuple[int, ...]], ranges: int) -> Totals:
    """Zeros for every range."""
    norm, inputs, states, up, outputs, A2, conv, D, dt_bias = shapes
    products = sum(int(np.prod(s)) for s in (inputs, states, up, outputs, norm))
    return Totals(*(np.zeros((ranges, *s)) for s in ((products,), A2, conv, D, dt_bias)))


def sum_ranges(totals: Totals) -> list[np.ndarray[Any, Any]]:
    """Their sums in range order, a piece of the long ones at a time: 1 M float64 take 3 ms on one thread."""
    out = [np.empty(t.shape[1:]) for t in totals]
    pairs = [(total.reshape(len(total), -1), to.reshape(-1)) for total, to in zip(totals, out, strict=True)]

    def work(task: tuple[int, int]) -> None:
        (total, to), piece = pairs[task[0]], slice(task[1], task[1] + PIECE)
        np.sum(total[:, piece], 0, out=to[piece])

    run_tasks(work, [(number, at) for number, (_, to) in enumerate(pairs) for at in range(0, to.size, PIECE)])
    return out


def unpack_totals(sums: list[Tensor], shapes: list[tuple[int, ...]], dtype: torch.dtype) -> list[Tensor]:
    """Gradients in the order of Packed."""
    norm, inputs, states, up, outputs = shapes[:5]
    products, A2, conv, D, dt_bias = (s.to(dtype) for s in sums)
    order = (inputs, states, up, outputs, norm)
    inputs_, states_, up_, outputs_, norm_ = (
        part.view(shape) for part, shape in zip(products.split([int(np.prod(s)) for s in order]), order, strict=True)
    )
    return [norm_, inputs_, states_, up_, outputs_, A2 * LN2, conv, D, dt_bias]  # sums are the gradient of A, not of A2
