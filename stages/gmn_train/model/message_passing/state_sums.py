"""Gradients of a few edge states, summed over ranges of rows and then over the ranges in their order.

Ranges do not depend on the number of threads, so neither do the sums.
"""

import numpy as np
import torch
from torch import Tensor

FEW_STATES = 64
"""With more, a sum for every range would be larger than the node states themselves."""


class StateSums:
    """One (states, columns) sum for each range; `wanted`: False for sums of no rows."""

    def __init__(self, ranges: list[tuple[int, int]], states: Tensor, *, wanted: bool) -> None:
        self.ranges, self.like = ranges, states
        shape = states.shape if wanted else (0, states.shape[1])
        self.parts = np.zeros((len(ranges), *shape), states.detach().numpy().dtype)

    def total(self) -> Tensor:
        """Over all ranges, summed in float64."""
        return torch.from_numpy(self.parts.sum(0, dtype=np.float64)).to(self.like.dtype)
