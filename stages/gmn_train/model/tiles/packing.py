"""A BiMamba layer's parameters as the kernels take them: padded to whole vectors, directions side by side.

Plain torch operations on small matrices, so that autograd takes the gradients apart again.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from gmn_train.model.scan.kernels import LN2
from gmn_train.model.simd.vectors import LANES
from gmn_train.model.tiles.matrix_product import matrix_product


class Packed(NamedTuple):
    """What has gradients; k directions, d and E padded to LANES where that says dp and Ep, N to four."""

    norm: Tensor  # (2, d)
    inputs: Tensor  # (dp, 2 k Ep): per direction W_input, W_2
    states: Tensor  # (k, Ep, Q): B, C, low rank of Δ
    up: Tensor  # (k, R, Ep)
    outputs: Tensor  # (k Ep, dp): W_out W_1
    A2: Tensor  # (k, blocks, N, LANES)
    conv: Tensor  # (k, taps + 1, Ep), the bias last
    D: Tensor  # (k, Ep)
    dt_bias: Tensor  # (k, Ep)


def pad_to(x: Tensor, *multiples: int) -> Tensor:
    """x with zeros after each of its last dimensions, up to a multiple of these."""
    sizes = x.shape[-len(multiples) :]
    ends = [(-size % multiple) for size, multiple in zip(sizes, multiples, strict=True)]
    return pad(x, [n for end in reversed(ends) for n in (0, end)]) if any(ends) else x


def pack_layer(norm: Any, branches: list[Any], out_proj: Tensor) -> Packed:
    """The layer's parameters: its norm, its one or two MambaBranches and W_out."""
    states = branches[0].A_log.shape[1]
    projections = [p.weight.T for b in branches for p in (b.in_proj, b.gate_proj)]  # (d, E) each
    return Packed(
        torch.stack([norm.weight, norm.bias]),
        torch.cat([pad_to(p, LANES, LANES) for p in projections], 1),
        torch.stack([pad_to(_state_columns(b, states), LANES, LANES) for b in branches]),
        torch.stack([pad_to(b.dt_up.weight.T, 1, LANES) for b in branches]),
        torch.cat([pad_to(matrix_product(out_proj, b.out_proj.weight).T, LANES, LANES) for b in branches]),
        torch.stack([pack_decays(-torch.exp(b.A_log)) for b in branches]),
        torch.stack([pad_to(torch.cat([b.conv_weight.T, b.conv_bias[None]]), 1, LANES) for b in branches]),
        torch.stack([pad_to(b.D, LANES) for b in branches]),
        torch.stack([pad_to(b.dt_up.bias, LANES) for b in branches]),
    )


def _state_columns(branch: Any, states: int) -> Tensor:
    """(E, 2N + R): B and C with states padded to four, and the low rank of Δ."""
    BC = pad_to(branch.state_proj.weight.T.reshape(-1, 2, states), 4).flatten(1)
    return torch.cat([BC, branch.dt_down.weight.T], 1)


def pack_decays(A: Tensor) -> Tensor:
    """A (channels, states) times log2 e as (blocks, states, LANES), padded by zeros."""
    padded = pad_to(A / LN2, LANES, 4)
    return padded.view(-1, LANES, padded.shape[1]).transpose(1, 2).contiguous()


def unpack_decays(packed: Tensor, channels: int, states: int) -> Tensor:
    """(channels, states) of (blocks, states, LANES)."""
    return packed.transpose(1, 2).reshape(-1, packed.shape[1])[:channels, :states]
