"""Bidirectional Mamba: the paper's Algorithm 2 in a pre-norm residual.

Shapes: T rows (batch x length, or packed), d = width, E = expand x width channels, N states, R = rank of Δ.

Algorithm 2 multiplies each branch by its own W_1 and their sum by W_out. Two linear maps in a row are one, so the
weights are multiplied (d x d by d x E) instead of the rows: same function, a third of the work.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear, silu

from gmn_pipeline.errors import ModelError
from gmn_train.model.layers.conv import conv_rows
from gmn_train.model.layers.rowwise.full_precision import full
from gmn_train.model.scan import ScanInputs, gated_scans
from gmn_train.model.scan.checks import check_finite, check_seq_ptr, has_kernels
from gmn_train.model.tiles.layer import LONGEST, run_layer, run_long_layer
from gmn_train.model.tiles.packing import pack_layer

DT_RANGE = (1e-3, 1e-1)  # step sizes at initialisation, as in Mamba


class MambaBranch(nn.Module):
    """One direction of Algorithm 2 up to the scan; BiMamba runs it, both directions at once, and applies W_1."""

    def __init__(self, width: int, channels: int, states: int, conv_width: int, dt_rank: int, *, reverse: bool) -> None:
        super().__init__()
        self.reverse = reverse
        self.in_proj = nn.Linear(width, channels, bias=False)  # W_input
        self.gate_proj = nn.Linear(width, channels, bias=False)  # W_2
        self.conv_weight = nn.Parameter(torch.empty(channels, conv_width))
        self.conv_bias = nn.Parameter(torch.empty(channels))
        self.state_proj = nn.Linear(channels, 2 * states, bias=False)  # W_B beside W_C
        self.dt_down = nn.Linear(channels, dt_rank, bias=False)  # W_Δ of low rank, as in Mamba
        self.dt_up = nn.Linear(dt_rank, channels)
        self.A_log = nn.Parameter(torch.empty(channels, states))
        self.D = nn.Parameter(torch.ones(channels))
        self.out_proj = nn.Linear(channels, width, bias=False)  # W_1
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Mamba's initialisation: A = -1..-N, softplus(bias of Δ) log-uniform in DT_RANGE."""
        bound = self.conv_weight.shape[1] ** -0.5
        nn.init.uniform_(self.conv_weight, -bound, bound)
        nn.init.uniform_(self.conv_bias, -bound, bound)
        nn.init.uniform_(self.dt_up.weight, -(self.dt_up.in_features**-0.5), self.dt_up.in_features**-0.5)
        low, high = map(math.log, DT_RANGE)
        with torch.no_grad():
            dt = torch.exp(torch.rand_like(self.dt_up.bias) * (high - low) + low)
            self.dt_up.bias.copy_(dt + torch.log(-torch.expm1(-dt)))  # the inverse of softplus
            self.A_log.copy_(torch.arange(1, self.A_log.shape[1] + 1).log().expand_as(self.A_log))

    def scan_inputs(self, x: Tensor, seq_ptr: Tensor, *, gated: bool = True) -> ScanInputs:
        """What this direction scans, of normalised rows x (T, d); gated: its outputs come with the gate applied."""
        u = conv_rows(full(self.in_proj(x)), self.conv_weight, self.conv_bias, seq_ptr, self.reverse)  # (T, E)
        # A plain product: with `linear` the weight's gradient is (E, T) times (T, rank), and both projections forward
        # and backward take 40 ms instead of 19 at 90,000 rows.
        dt = full(self.dt_down(u) @ self.dt_up.weight.T.contiguous())  # (T, E), before bias and softplus
        BC = full(self.state_proj(u))  # (T, 2N)
        A = -torch.exp(self.A_log)  # (E, N)
        z = full(self.gate_proj(x)) if gated else None  # (T, E)
        return ScanInputs(u, dt, A, BC, self.D, self.dt_up.bias, z, seq_ptr, self.reverse)


class BiMamba(nn.Module):
    """x + dropout(W_out (Y_forward + Y_backward)) of the normalised x, for batches or packed sequences.

    Args:
        width: features per token, d.
        states: N.
        expand: E / d.
        conv_width: taps of the causal convolution.
        dt_rank: rank of Δ's projection; by default a sixteenth of the width, rounded up.
        dropout: on the block's output, before the residual.
        bidirectional: False leaves out the backward branch (the paper's ablation).
        shared_A: both directions use one A, as Algorithm 2 writes it; by default each learns its own.
        backend: of the scan, see `scan.BACKENDS`.
    """

    def __init__(
        self,
        width: int,
        *,
        states: int = 16,
        expand: float = 2,
        conv_width: int = 4,
        dt_rank: int | None = None,
        dropout: float = 0.0,
        bidirectional: bool = True,
        shared_A: bool = False,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        channels = int(expand * width)
        dt_rank = math.ceil(width / 16) if dt_rank is None else dt_rank
        sizes = {
            "width": width,
            "states": states,
            "expand x width": channels,
            "conv_width": conv_width,
            "dt_rank": dt_rank,
        }
        for name, size in sizes.items():
            if size < 1:
                raise ModelError(f"BiMamba: {name} is {size}, it must be at least 1")
        if not 0 <= dropout < 1:
            raise ModelError(f"BiMamba: dropout is {dropout}, it must be in [0, 1)")
        self.width, self.dropout, self.backend = width, dropout, backend
        self.norm = nn.LayerNorm(width)
        self.forward_branch = MambaBranch(width, channels, states, conv_width, dt_rank, reverse=False)
        self.backward_branch = (
            MambaBranch(width, channels, states, conv_width, dt_rank, reverse=True) if bidirectional else None
        )
        if self.backward_branch is not None and shared_A:
            self.backward_branch.A_log = self.forward_branch.A_log
        self.out_proj = nn.Linear(width, width, bias=False)  # W_out

    def forward(
        self, x: Tensor, seq_ptr: Tensor | None = None, *, only_last: bool = False, again: bool = False
    ) -> Tensor:
        """Update x (batch, length, d), or packed (total, d) with seq_ptr (sequences + 1,); x's shape stays.

        With `only_last`, return each sequence's last row only, (sequences, d), equal to that row of the full
        result: gate and output projection are computed for one row per sequence, and so is the whole backward
        branch, which has seen nothing else there.

        again: the result is known already and only its gradient is wanted: on tiles, which compute a layer again for
        its gradient, the values are then zeros.

        Raises:
            ModelError: the shape or the borders do not fit, or x is not finite.
        """
        if x.dtype != self.norm.weight.dtype:
            raise ModelError(f"BiMamba: x is {x.dtype}, the layer is {self.norm.weight.dtype}; convert one of them")
        rows, ptr = pack_rows(x, seq_ptr, self.width)  # (T, d), (sequences + 1,)
        if self.fits_tiles(rows, ptr, only_last):
            return self._tiles(rows, ptr, only_last, again).view((len(ptr) - 1, self.width) if only_last else x.shape)
        normed = self.norm(rows)
        last = last_rows(ptr).to(x.device) if only_last else None  # (sequences,)
        scans = [self.forward_branch.scan_inputs(normed, ptr, gated=last is None)]
        if last is not None:  # what follows are sequences of one row
            rows, normed, ptr = rows[last], normed[last], torch.arange(len(last) + 1)
        if self.backward_branch is not None:
            scans.append(self.backward_branch.scan_inputs(normed, ptr))
        y, *backward = gated_scans(scans, self.backend)  # (T, E), both directions at once
        if last is not None:
            y = y[last] * silu(full(self.forward_branch.gate_proj(normed)))  # (sequences, E)
        update = linear(y, self.out_proj.weight @ self.forward_branch.out_proj.weight)  # (T, d), or (sequences, d)
        if self.backward_branch is not None:
            W = self.out_proj.weight @ self.backward_branch.out_proj.weight  # (d, E)
            update = torch.addmm(update, backward[0], W.T)
        out = rows + dropout(full(update), self.dropout, self.training)
        return out if only_last else out.view(x.shape)

    def fits_tiles(self, rows: Tensor, ptr: Tensor, only_last: bool) -> bool:
        """Whether the layer runs as one pass over tiles: `tiles.layer`."""
        if self.backend not in ("auto", "numba") or not has_kernels(rows):
            return False
        return len(rows) > 0 and not (only_last and is_long(ptr))

    def _tiles(self, rows: Tensor, ptr: Tensor, only_last: bool, again: bool) -> Tensor:
        branches = [b for b in (self.forward_branch, self.backward_branch) if b is not None]
        with torch.autocast("cpu", enabled=False):
            packed = pack_layer(self.norm, branches, self.out_proj.weight)
        dropped = self.dropout > 0 and self.training
        half = rows.dtype == torch.float32 and torch.is_autocast_enabled("cpu")
        if is_long(ptr):
            update = run_long_layer(rows, packed, ptr, self.norm.eps, half=half)
            return rows + dropout(update, self.dropout, self.training)
        ends = last_rows(ptr) if only_last else None
        out = run_layer(
            rows, packed, ptr, self.norm.eps, only_last=only_last, residual=not dropped, half=half, again=again
        )
        if not dropped:
            return out
        return (rows if ends is None else rows[ends]) + dropout(out, self.dropout, self.training)


def is_long(ptr: Tensor) -> bool:
    """Whether a sequence is too long for a tile."""
    return int(ptr.diff().max()) > LONGEST


def pack_rows(x: Tensor, seq_ptr: Tensor | None, width: int) -> tuple[Tensor, Tensor]:
    """Check x and return it as rows (T, d) with their borders (sequences + 1,) on the CPU."""
    if x.dim() != (3 if seq_ptr is None else 2) or x.shape[-1] != width:
        raise ModelError(
            f"BiMamba: x has shape {tuple(x.shape)}, expected (batch, length, {width}), "
            f"or packed (total, {width}) with seq_ptr"
        )
    check_finite(x=x)
    if seq_ptr is None:
        return x.flatten(0, 1), torch.arange(x.shape[0] + 1) * x.shape[1]
    return x, check_seq_ptr(seq_ptr, len(x))


def last_rows(seq_ptr: Tensor) -> Tensor:
    """The row where each sequence ends, (sequences,)."""
    if len(seq_ptr) > 1 and int(seq_ptr.diff().min()) == 0:
        at = int(seq_ptr.diff().argmin())
        raise ModelError(f"BiMamba: sequence {at} is empty, so it has no last row; drop it or use only_last=False")
    return seq_ptr[1:] - 1
