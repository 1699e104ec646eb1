"""An average of the trained weights, which is what gets evaluated and kept.

Validation of the last weights swings from step to step. Their exponential average over a small share of the run is
steadier, and mostly better: the chosen epoch is then no lucky one.
"""

from copy import deepcopy
from itertools import chain

import torch
from torch import Tensor, nn

UPDATES = "updates"
"""In a checkpoint, beside the averaged weights: how many steps they have seen."""


class WeightAverage:
    """The average over about `share` of `steps`; over fewer at the beginning, so as to forget the first weights.

    Not torch's AveragedModel, which walks through all modules at each step: 2.9 ms where this takes 0.24, of 46 for a
    step on small graphs.
    """

    def __init__(self, model: nn.Module, share: float, steps: int) -> None:
        self.keep = 1 - 1 / max(share * steps, 1.0)
        self.updates = 0
        self.module = deepcopy(model) if self.keep > 0 else model
        """The model to evaluate; the trained one itself where nothing is averaged."""
        averages, values = (list(chain(m.parameters(), m.buffers())) for m in (self.module, model))
        pairs = [pair for pair in zip(averages, values, strict=True) if self.keep > 0]
        self._moved = [pair for pair in pairs if pair[0].is_floating_point()]
        self._copied = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def update(self) -> None:
        """After an optimizer's step."""
        share = 1.0 if self.updates == 0 else 1 - min(self.keep, (1 + self.updates) / (10 + self.updates))
        if self._moved:
            torch._foreach_lerp_([average for average, _ in self._moved], [value for _, value in self._moved], share)
        for average, value in self._copied:
            average.copy_(value)
        self.updates += 1

    def state_dict(self) -> dict[str, Tensor]:
        """For a checkpoint; empty where nothing is averaged."""
        return {} if self.keep <= 0 else {UPDATES: torch.tensor(self.updates), **self.module.state_dict()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """From a checkpoint."""
        if self.keep > 0:
            state = dict(state)
            self.updates = int(state.pop(UPDATES))
            self.module.load_state_dict(state)
