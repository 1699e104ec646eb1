"""An average of the trained weights, which is what gets evaluated and kept.

Validation of the last weights swings from step to step. Their exponential average over a small share of the run is
steadier, and mostly better: the chosen epoch is then no lucky one.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


class WeightAverage:
    """The average over about `share` of `steps`; over fewer at the beginning, so as to forget the first weights."""

    def __init__(self, model: nn.Module, share: float, steps: int) -> None:
        self.keep = 1 - 1 / max(share * steps, 1.0)
        self.module: nn.Module = model
        """The model to evaluate; the trained one itself where nothing is averaged."""
        self._average: AveragedModel | None = None
        if self.keep > 0:
            self._average = AveragedModel(model, multi_avg_fn=self._move, use_buffers=True)
            self.module = self._average.module

    @torch.no_grad()
    def _move(self, averages: Sequence[Tensor], values: Sequence[Tensor], count: Tensor | int) -> None:
        share = 1 - min(self.keep, (1 + int(count)) / (10 + int(count)))
        for average, value in zip(averages, values, strict=True):
            if average.is_floating_point():
                average.lerp_(value, share)
            else:
                average.copy_(value)

    def update(self, model: nn.Module) -> None:
        """After an optimizer's step."""
        if self._average is not None:
            self._average.update_parameters(model)

    def state_dict(self) -> dict[str, Tensor]:
        """For a checkpoint; empty where nothing is averaged."""
        return {} if self._average is None else self._average.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """From a checkpoint."""
        if self._average is not None:
            self._average.load_state_dict(state)
