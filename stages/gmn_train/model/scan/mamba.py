"""mamba-ssm's CUDA kernel behind our signature.

Use it on CUDA. The kernel wants (batch, channels, length) and knows no borders, so sequences of one length
are transposed and others padded to the longest; a padded step has Δ = 0, which leaves the state alone.
Sequences of very different lengths are better scanned in separate calls.
"""

from typing import Any

import torch
from torch import Tensor

from gmn_pipeline.errors import ModelError


def load_kernel() -> Any:
    """Import mamba-ssm's `selective_scan_fn`, late: importing it needs CUDA and triton.

    Raises:
        ModelError: mamba-ssm is missing, or was built without Mamba-1's kernel.
    """
    try:
        from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
    except ImportError as error:
        raise ModelError(
            f"backend 'mamba' needs mamba-ssm with its CUDA kernel ({error}); install it with "
            "MAMBA_KEEP_CUDA_BUILD=TRUE pip install mamba-ssm --no-build-isolation, "
            "or use backend='reference'"
        ) from error
    return selective_scan_fn


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
    """Selective scan by mamba-ssm; arguments as in `reference.scan`."""
    kernel = load_kernel()
    if u.numel() == 0:
        return u * delta
    rows = padded_rows(seq_ptr, reverse).to(u.device)  # (sequences, longest)
    real = rows >= 0
    whole = bool(real.all())

    def lay_out(x: Tensor) -> Tensor:  # (total, k) -> (sequences, k, longest)
        x = x[rows.clamp(min=0)]
        return (x if whole else x * real.unsqueeze(-1)).transpose(1, 2).contiguous()

    y = kernel(lay_out(u), lay_out(delta), A.contiguous(), lay_out(B), lay_out(C), None if D is None else D.float())
    return torch.zeros_like(u).index_copy(0, rows[real], y.transpose(1, 2)[real].to(u.dtype))


def padded_rows(seq_ptr: Tensor, reverse: bool) -> Tensor:
    """Row of each sequence's i-th step, (sequences, longest) int64; -1 after its end."""
    lengths = seq_ptr.diff().unsqueeze(1)  # (sequences, 1)
    step = torch.arange(int(lengths.max()), device=seq_ptr.device).unsqueeze(0)  # (1, longest)
    rows = seq_ptr[1:].unsqueeze(1) - 1 - step if reverse else seq_ptr[:-1].unsqueeze(1) + step
    return torch.where(step < lengths, rows, -1)
