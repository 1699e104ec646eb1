"""The published recurrence in plain torch: any device, any float type, slow; the others are tested by it.

Use it to check, or where no other backend runs. It costs one round of small tensor operations per time step,
and autograd stores every state: about 100 times the time of `numba`.
"""

import torch
from torch import Tensor


def scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None,
    seq_ptr: Tensor,
    reverse: bool,
) -> Tensor:
    """h[t] = exp(Δ[t] A) h[t-1] + Δ[t] B[t] u[t]; y[t] = C[t] h[t] + D u[t], for each sequence from h = 0.

    u, delta (total, channels); A (channels, states); B, C (total, states); D (channels,);
    seq_ptr (sequences + 1,).
    """
    seq_ptr = seq_ptr.to(u.device)
    lengths, longest_first = seq_ptr.diff().sort(descending=True, stable=True)  # (sequences,)
    first = (seq_ptr[1:] - 1 if reverse else seq_ptr[:-1])[longest_first]  # (sequences,)
    going = [int((lengths > step).sum()) for step in range(int(lengths[0]) if len(lengths) else 0)]
    if not going:
        return u * delta  # no rows, but part of the graph
    order = torch.cat([first[:k] - i if reverse else first[:k] + i for i, k in enumerate(going)])  # (total,)
    h = u.new_zeros(len(lengths), *A.shape)  # (sequences, channels, states)
    outputs = []
    for u_t, delta_t, B_t, C_t in zip(*(torch.split(x[order], going) for x in (u, delta, B, C)), strict=True):
        decay = torch.exp(delta_t.unsqueeze(-1) * A)  # (going, channels, states)
        h = decay * h[: len(u_t)] + (delta_t * u_t).unsqueeze(-1) * B_t.unsqueeze(1)
        outputs.append((h * C_t.unsqueeze(1)).sum(-1))  # (going, channels)
    y = torch.empty_like(u).index_copy(0, order, torch.cat(outputs))
    return y if D is None else y + D * u
