"""Processes that join compare what they are about to do: a mixture of two runs would end as if nothing were wrong."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
import xxhash

from gmn_pipeline.console.config import identity
from gmn_pipeline.errors import TrainError
from gmn_train.grains.wire import Wire
from gmn_train.ranks.join import swap_with_all
from gmn_train.runs.folder import RunFolder
from gmn_train.settings.run_settings import TrainConfig

Facts = Mapping[str, Any]


def check_alike(wire: Wire, config: TrainConfig, folder: RunFolder, *, fresh: bool) -> None:
    """TrainError in every process where settings, store, versions or the progress they start from differ."""
    if wire.size == 1:
        return
    everyone = _exchange(wire, _facts(config, folder, fresh=fresh))
    for rank, facts in enumerate(everyone):
        for name in {**everyone[0], **facts}:
            here, there = everyone[0].get(name), facts.get(name)
            if here != there:
                raise TrainError(
                    f"the processes of this run differ: {name} is {here} in process 0 and {there} in process {rank}; "
                    "start all with the same command, store, run folder and versions"
                )


def _facts(config: TrainConfig, folder: RunFolder, *, fresh: bool) -> Facts:
    """By name, in the order in which a difference is told."""
    settings = identity(config)
    store = str(settings.pop("fingerprint", None))[:12]
    versions = {name: version(name) for name in ("gmn-pipeline", "torch")}
    return {
        **{f"the version of {name}": number for name, number in versions.items()},
        "the store's fingerprint": store,
        **{name: settings[name] for name in sorted(settings)},
        "the progress in the run's folder": _progress(folder, fresh=fresh),
    }


def _progress(folder: RunFolder, *, fresh: bool) -> str:
    if fresh:
        return "none"
    if folder.summary() is not None:
        return "a finished run"
    if not folder.last.exists():
        return "no checkpoint yet"
    return f"checkpoint {xxhash.xxh3_64_hexdigest(folder.last.read_bytes())}"


def _exchange(wire: Wire, own: Facts) -> list[Facts]:
    """Every process's facts, by rank."""
    text = torch.from_numpy(np.frombuffer(json.dumps(own, default=str).encode(), dtype=np.uint8).copy())
    sizes = torch.zeros(wire.size, dtype=torch.int64)
    sizes[wire.rank] = len(text)
    swap_with_all(wire, sizes[wire.rank : wire.rank + 1], {r: sizes[r : r + 1] for r in range(wire.size)})
    texts = [text if r == wire.rank else torch.empty(int(sizes[r]), dtype=torch.uint8) for r in range(wire.size)]
    swap_with_all(wire, text, dict(enumerate(texts)))
    return [json.loads(buffer.numpy().tobytes()) for buffer in texts]
