"""Processes that join compare what they are about to do: a mixture of two runs would end as if nothing were wrong."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import xxhash

from gmn_pipeline.console.config import identity
from gmn_pipeline.errors import TrainError
from gmn_train.grains.wire import Wire
from gmn_train.ranks.join import gather_values
from gmn_train.runs.folder import RunFolder
from gmn_train.settings.run_settings import TrainConfig

Facts = Mapping[str, Any]
SAME_VERSIONS = ("gmn-pipeline", "torch", "numpy", "numba")
"""Packages that decide the bits of a step."""


def check_alike(wire: Wire, config: TrainConfig, folder: RunFolder, *, fresh: bool) -> None:
    """TrainError in every process where settings, store, versions or the progress they start from differ."""
    if wire.size == 1:
        return
    everyone: list[Facts] = gather_values(wire, _facts(config, folder, fresh=fresh))
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
    versions = {name: version(name) for name in SAME_VERSIONS}
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
