"""bfloat16 where it is asked for and a probe shows that it works and is faster; float32 otherwise."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import torch

from gmn_train.machine.probes import probe_bf16
from gmn_train.settings.train_config import TrainConfig

Precision = Literal["float32", "bf16"]


def choose_precision(
    config: TrainConfig, device: torch.device, say: Callable[[str], None], recorded: Precision | None = None
) -> Precision:
    """The precision to compute in; `say` is told why where it is not the bf16 that was asked for.

    recorded: what a run that is resumed or evaluated began with. It is kept, whatever is faster today, unless bfloat16
    does not work at all on this machine.
    """
    if config.precision == "float32" or recorded == "float32":
        return "float32"
    found = _probe_once(torch.get_num_threads(), config.model.width, device.type)
    if not found["works"]:
        say(f"float32 is used, not bf16: {found['reason']}")
        return "float32"
    if recorded is None and found["bf16_seconds"] >= found["float32_seconds"]:
        times = f"{found['bf16_seconds'] * 1e3:.1f} ms against {found['float32_seconds'] * 1e3:.1f} ms"
        say(f"float32 is used, not bf16: it is slower here, {times} for one layer")
        return "float32"
    return "bf16"


@lru_cache
def _probe_once(threads: int, width: int, device: str) -> dict[str, Any]:
    return probe_bf16(threads, width, device)


def computing_in(precision: Precision, device: torch.device) -> torch.autocast:
    """Matrix products inside are computed in `precision`; `model/precision.py` says what stays in float32.

    No cache of converted weights: one made where gradients are off (chunks are recomputed) would lose gradients.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16", cache_enabled=False)
