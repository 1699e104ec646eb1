"""What stays in float32 when matrix products are computed in bfloat16.

Under `torch.autocast` linear maps return bfloat16. Node states between modules, norms, scans, convolutions along
sequences, pooling and predictions are float32: each place where a product ends and one of these begins calls `full`.
"""

import torch
from torch import Tensor


def full(x: Tensor) -> Tensor:
    """x in float32 where autocast made it 16 bits wide; otherwise x itself, float64 included."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
