"""Where a run computes, and in which precision."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch

from gmn_pipeline.errors import TrainError
from gmn_train.data.inputs import ModelInputs, to_device
from gmn_train.machine.probes import probe_bf16
from gmn_train.settings.run_settings import TrainConfig

Precision = Literal["float32", "bf16"]
KEPT_PRODUCTS = "128"
"""Compiled products of bfloat16 that oneDNN keeps, at least three for each shape. Batches of graphs have new shapes in
each step. With oneDNN's own 1024, training on MalNet-Tiny grew to 7.5 GB where float32 takes 1.2."""


@dataclass(frozen=True)
class Compute:
    """A device, and the precision of matrix products on it."""

    device: torch.device
    precision: Precision = "float32"

    @classmethod
    def of(cls, config: TrainConfig, say: Callable[[str], None] = lambda _: None) -> "Compute":
        """What the settings ask for. `say` gets the reason if bfloat16 was asked for and is not used."""
        device = choose_device(config.device)
        return cls(device, choose_precision(config, device, say))

    def autocast(self) -> torch.autocast:
        """Matrix products inside are computed in `precision`; `layers/full_precision.py` says what stays in float32.

        No cache of converted weights: one made where gradients are off (chunks are recomputed) would lose gradients.
        """
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16", cache_enabled=False)

    def move(self, inputs: ModelInputs) -> ModelInputs:
        """Inputs, which are read on the CPU, where the model is."""
        return inputs if self.device.type == "cpu" else to_device(inputs, self.device)


def use_threads(threads: int | None) -> None:
    """One number for torch's threads and for our kernels, which follow torch's."""
    if threads is not None:
        torch.set_num_threads(threads)


def choose_device(name: str) -> torch.device:
    """The device that `--device` names; TrainError where it is not there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise TrainError("--device cuda was asked for, but torch sees no CUDA here; use --device cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def choose_precision(config: TrainConfig, device: torch.device, say: Callable[[str], None]) -> Precision:
    """float32; or bf16 where it was asked for and works, or where `auto` finds it faster."""
    if config.precision == "float32":
        return "float32"
    probe = _probe_once(torch.get_num_threads(), config.model.width, device.type)
    if not probe["works"]:
        say(f"float32 is used, not bf16: {probe['reason']}")
        return "float32"
    if config.precision == "auto" and probe["bf16_seconds"] >= probe["float32_seconds"]:
        times = f"{probe['bf16_seconds'] * 1e3:.1f} ms against {probe['float32_seconds'] * 1e3:.1f} ms"
        say(f"float32 is used, not bf16: it is slower here, {times} for one layer")
        return "float32"
    if device.type == "cpu":
        for cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # oneDNN's own, and torch's above it
            os.environ.setdefault(cache, KEPT_PRODUCTS)
    return "bf16"


@lru_cache
def _probe_once(threads: int, width: int, device: str) -> dict[str, Any]:
    return probe_bf16(threads, width, device)
