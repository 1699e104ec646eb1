"""The published recurrence in plain torch: any device, any float type, slow; the others are tested by it.

Use it to check, or where no other backend runs. Costs one round of small tensor operations per time step, and
autograd stores every state: about 100 times the time and 50 times the memory of `numba`.
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

    u, delta (total, channels); A (channels, states); B, C (total, states); D (channels,); seq_ptr (sequences
    + 1,).
    """
    seq_ptr = seq_ptr.to(u.device)
    lengths = seq_ptr.diff()  # (sequences,)
    alive = torch.arange(len(lengths), device=u.device)  # sequences with a step to go
    h = u.new_zeros(len(lengths), *A.shape)  # (alive, channels, states)
    rows, outputs = [], []
    for step in range(int(lengths.max()) if len(lengths) else 0):
        going = lengths[alive] > step
        alive, h = alive[going], h[going]
        t = seq_ptr[alive + 1] - 1 - step if reverse else seq_ptr[alive] + step  # (alive,)
        decay = torch.exp(delta[t].unsqueeze(-1) * A)  # (alive, channels, states)
        h = decay * h + (delta[t] * u[t]).unsqueeze(-1) * B[t].unsqueeze(1)
        outputs.append((h * C[t].unsqueeze(1)).sum(-1))  # (alive, channels)
        rows.append(t)
    y = torch.zeros_like(u)
    if rows:
        y = y.index_copy(0, torch.cat(rows), torch.cat(outputs))
    return y if D is None else y + D * u
