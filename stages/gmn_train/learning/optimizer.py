"""AdamW with weight decay on matrices only, and a learning rate that warms up and then follows a cosine."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from gmn_train.settings.run_settings import TrainConfig

UNDECAYED = ("A_log", "D", "bias", "norm")


class AdamW:
    """torch's AdamW, by the function behind its class, with the same bits and the same state.

    The class imports torch's compiler, which no run uses and every run would wait for: more than a second.
    """

    def __init__(self, decayed: list[nn.Parameter], free: list[nn.Parameter], weight_decay: float) -> None:
        self.lr = 1e-3
        self._groups = ((decayed, weight_decay), (free, 0.0))
        self._parameters = [*decayed, *free]
        self._states: dict[Tensor, dict[str, Tensor]] = {}
        # One pass over all parameters on the CPU, and no parallel region per tensor: 270 of them take 4.6 ms, not 13.
        # The bits are the same for 1, 2 and 3 threads.
        self._fused = all(p.device.type == "cpu" and p.is_floating_point() for p in self._parameters)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for group, weight_decay in self._groups:
            moved: list[Tensor] = [parameter for parameter in group if parameter.grad is not None]
            states = [self._state(parameter) for parameter in moved]
            adamw(
                moved, [p.grad for p in moved if p.grad is not None], [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states], [], [s["step"] for s in states], fused=self._fused, amsgrad=False,
                beta1=0.9, beta2=0.999, lr=self.lr, weight_decay=weight_decay, eps=1e-8, maximize=False,
            )  # fmt: skip

    def _state(self, parameter: Tensor) -> dict[str, Tensor]:
        """Of one parameter; zeros before its first step."""
        if parameter not in self._states:
            self._states[parameter] = {
                "step": torch.zeros((), dtype=torch.float32),
                "exp_avg": torch.zeros_like(parameter, memory_format=torch.preserve_format),
                "exp_avg_sq": torch.zeros_like(parameter, memory_format=torch.preserve_format),
            }
        return self._states[parameter]

    def state_dict(self) -> dict[str, Any]:
        """What a resume needs; parameters are numbered."""
        numbered = enumerate(self._parameters)
        return {"state": {number: self._states[p] for number, p in numbered if p in self._states}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take what `state_dict` gave. Raises ValueError, or what Python raises, for anything else."""
        for number, values in state["state"].items():
            parameter = self._parameters[number]
            moments = {name: values[name].to(parameter) for name in ("exp_avg", "exp_avg_sq")}
            if any(moment.shape != parameter.shape for moment in moments.values()) or values["step"].dim():
                raise ValueError(f"moments of parameter {number} have another shape")
            self._states[parameter] = {"step": values["step"], **moments}


def make_optimizer(model: nn.Module, config: TrainConfig) -> AdamW:
    """Decay is for weight matrices: A_log and D shape the scan's memory, norms and biases have nothing to shrink."""
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_free = parameter.dim() < 2 or any(part in UNDECAYED for part in name.split("."))
        (free if is_free else decayed).append(parameter)
    return AdamW(decayed, free, config.weight_decay)


def learning_rate(config: TrainConfig, time: float) -> float:
    """The rate at `time`, in epochs with fractions: linear to the peak over `warmup`, then half a cosine to zero."""
    assert config.lr is not None
    assert config.epochs is not None
    assert config.warmup is not None
    peak, epochs, warmup = config.lr, config.epochs, min(config.warmup, config.epochs // 2)
    if time < warmup:
        return peak * (time + 1) / (warmup + 1)
    return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, (time - warmup) / max(1, epochs - warmup))))
