"""A BiMamba layer over one sequence whose rows are cut over grains, in the order of the grains.

A piece of a scan is affine in the state that comes in: out = exp(A ΣΔ) in + end. So each grain scans its piece from a
state of zero, all summaries are gathered, and each grain puts those before it together, one after the other: the state
that its piece starts from. The way back goes the same way, from the last grain to the first. The convolution reads
`taps - 1` rows beyond the piece. Kept for the way back: the rows, those beside them, and the states at the borders; the
rest is computed again.

Two passes over the rows instead of one in each direction of time: a layer takes about 1.6 times as long as in one
piece. It uses as many threads as it has directions.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, pad, silu

from gmn_pipeline.errors import ModelError
from gmn_pipeline.types import FloatArray
from gmn_train.grains.grain import Grain
from gmn_train.machine.threads import run_tasks
from gmn_train.model.layers.bimamba import BiMamba, MambaBranch
from gmn_train.model.layers.rowwise.norms import LayerNormRows
from gmn_train.model.scan.checks import check_finite, has_kernels
from gmn_train.model.scan.numba_scan import ScanInputs
from gmn_train.model.scan.piece import Summary, carry_back, scan_piece, summarise_piece


def scan_own_rows(layer: BiMamba, x: Tensor, grain: Grain) -> Tensor:
    """The layer's update of this grain's rows x (rows, d), without x added."""
    if not has_kernels(x):
        raise ModelError("a node scan over several processes runs on the CPU only; use mode batch, or one process")
    reach = layer.forward_branch.conv_weight.shape[1] - 1
    if len(x) < reach:
        raise ModelError(f"a grain has {len(x)} rows, fewer than the convolution's reach of {reach}; use fewer grains")
    check_finite(x=x)
    parameters = [p for p in layer.parameters() if p.requires_grad]
    out: Tensor = SplitScan.apply(layer, grain, x, *parameters)  # type: ignore[no-untyped-call]
    return out


class SplitScan(torch.autograd.Function):
    """See the module."""

    @staticmethod
    def forward(ctx: Any, layer: BiMamba, grain: Grain, x: Tensor, *parameters: Tensor) -> Tensor:
        wide, above = widen(x, layer, grain)
        scans = piece_inputs(layer, wide, above, len(x))
        summaries = meet_summaries(each(summarise_piece, scans), grain)
        before = [state_before(one, grain.number, scan.reverse) for one, scan in zip(summaries, scans, strict=True)]
        ys = each(lambda pair: scan_piece(*pair), list(zip(scans, before, strict=True)))
        ctx.save_for_backward(wide, *parameters)
        ctx.rest = (layer, grain, len(x), above, summaries, before)
        ctx.autocast = {"enabled": torch.is_autocast_enabled("cpu"), "dtype": torch.get_autocast_dtype("cpu")}
        return combine(layer, ys)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved, *parameters = ctx.saved_tensors
        layer, grain, rows, above, summaries, before = ctx.rest
        with torch.autocast("cpu", **ctx.autocast):
            carried = carried_gradients(layer, piece_inputs(layer, saved, above, rows), grad, summaries, grain)
            wide = saved.detach().requires_grad_()
            with torch.enable_grad():
                scans = piece_inputs(layer, wide, above, rows)
                ys = [scan_piece(*each_one) for each_one in zip(scans, before, carried, strict=True)]
                out = combine(layer, ys)
        grad_wide, *grads = torch.autograd.grad(out, [wide, *parameters], grad)
        return None, None, return_borders(grad_wide, above, rows, layer, grain), *grads


def each(work: Any, items: list[Any]) -> list[Any]:
    """work(item) of every item, on threads. Gradients are off in new threads' stead: callers keep them off."""
    results: list[Any] = [None] * len(items)

    def fill(place: int) -> None:
        with torch.no_grad():
            results[place] = work(items[place])

    run_tasks(fill, range(len(items)))
    return results


def widen(x: Tensor, layer: BiMamba, grain: Grain) -> tuple[Tensor, int]:
    """x with the rows beside it that the convolutions read, and how many of them stand above."""
    reach = layer.forward_branch.conv_weight.shape[1] - 1
    borders = grain.gather(torch.cat([x[:reach], x[len(x) - reach :]])).view(grain.count, 2, reach, x.shape[1])
    parts = [x]
    if grain.number > 0:
        parts.insert(0, borders[grain.number - 1, 1])
    if grain.number + 1 < grain.count and layer.backward_branch is not None:
        parts.append(borders[grain.number + 1, 0])
    return torch.cat(parts), reach if grain.number > 0 else 0


def return_borders(grad: Tensor, above: int, rows: int, layer: BiMamba, grain: Grain) -> Tensor:
    """The gradient of a grain's own rows, with what its neighbours found for those at its borders."""
    reach = layer.forward_branch.conv_weight.shape[1] - 1
    below = len(grad) - above - rows
    given = torch.cat(
        [pad(grad[:above], (0, 0, reach - above, 0)), pad(grad[above + rows :], (0, 0, 0, reach - below))]
    )
    borders = grain.gather(given).view(grain.count, 2, reach, grad.shape[1])
    own = grad[above : above + rows].clone()
    if grain.number > 0:
        own[:reach] += borders[grain.number - 1, 1]
    if grain.number + 1 < grain.count:
        own[rows - reach :] += borders[grain.number + 1, 0]
    return own


def branches(layer: BiMamba) -> list[MambaBranch]:
    return [branch for branch in (layer.forward_branch, layer.backward_branch) if branch is not None]


def piece_inputs(layer: BiMamba, wide: Tensor, above: int, rows: int) -> list[ScanInputs]:
    """What each direction scans of a grain's own rows."""
    normed: Tensor = LayerNormRows.apply(wide, layer.norm.weight, layer.norm.bias, layer.norm.eps)  # type: ignore[no-untyped-call]
    scans = []
    for branch in branches(layer):
        read = normed[above:] if branch.reverse else normed[: above + rows]
        own = slice(0, rows) if branch.reverse else slice(above, above + rows)
        scan = branch.scan_inputs(read, torch.tensor([0, len(read)]))
        u, dt, BC, z = (t[own] for t in (scan.u, scan.dt, scan.BC, scan.z) if t is not None)
        scans.append(scan._replace(u=u, dt=dt, BC=BC, z=z))
    return scans


def combine(layer: BiMamba, ys: list[Tensor]) -> Tensor:
    """Both directions' outputs (rows, E) to the layer's update (rows, d)."""
    parts = [linear(y, output_weight(layer, branch)) for y, branch in zip(ys, branches(layer), strict=True)]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def output_weight(layer: BiMamba, branch: MambaBranch) -> Tensor:
    """W_out W_1, (d, E)."""
    return layer.out_proj.weight @ branch.out_proj.weight


def carried_gradients(
    layer: BiMamba, scans: list[ScanInputs], grad: Tensor, summaries: list[list[Summary]], grain: Grain
) -> list[FloatArray]:
    """By direction, the gradient of the state after this grain's piece."""

    def carry(pair: tuple[ScanInputs, MambaBranch]) -> FloatArray:
        scan, branch = pair
        assert scan.z is not None
        return carry_back(scan, (grad @ output_weight(layer, branch)) * silu(scan.z))

    own = each(carry, list(zip(scans, branches(layer), strict=True)))
    ends = grain.gather(torch.from_numpy(np.stack(own)[None])).numpy()  # (grains, directions, blocks, states, LANES)
    gradients = []
    for k, scan in enumerate(scans):
        later = [Summary(one.decay, end) for one, end in zip(summaries[k], ends[:, k], strict=True)]
        gradients.append(state_before(later, grain.number, not scan.reverse))
    return gradients


def meet_summaries(own: list[Summary], grain: Grain) -> list[list[Summary]]:
    """By direction, every grain's summary."""
    mine = np.stack([np.stack([one.decay, one.end]) for one in own])
    everyone = grain.gather(torch.from_numpy(mine[None])).numpy()  # (grains, directions, 2, blocks, states, LANES)
    return [[Summary(*one) for one in everyone[:, k]] for k in range(len(own))]


def state_before(summaries: list[Summary], number: int, reverse: bool) -> FloatArray:
    """What the pieces before piece `number`, in the direction of the scan, leave to it: (blocks, states, LANES)."""
    state = np.zeros_like(summaries[0].end)
    for piece in range(len(summaries) - 1, number, -1) if reverse else range(number):
        state = summaries[piece].decay * state + summaries[piece].end
    return state
