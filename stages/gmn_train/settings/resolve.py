"""What a run chooses from its store, where the user has not: every None of the settings gets a value. No torch here."""

from dataclasses import replace
from math import ceil
from typing import Any

from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.errors import ConfigError, TrainError
from gmn_pipeline.store.manifest import Manifest
from gmn_train.settings.run_settings import Mode, TrainConfig


def resolve(config: TrainConfig, manifest: Manifest) -> TrainConfig:
    """The settings with nothing left to choose.

    Raises ConfigError (more tokens than stored, a mode the store does not have), TrainError (another store than the
    settings were made for).
    """
    if config.fingerprint not in (None, manifest.fingerprint):
        raise TrainError(
            f"these settings were made for another store than {config.store} (fingerprint {config.fingerprint[:12]}, "
            f"this one is {manifest.fingerprint[:12]}); use that store, or leave fingerprint out of the config file"
        )
    tokens = manifest.tokens.smaller(config.m, config.M, config.s)
    mode = _mode(config, many=manifest.graph.many)
    graphs = mode == "graphs"
    automatic: dict[str, Any] = {
        "epochs": 100 if graphs else 200,
        "lr": 0.001 if graphs else 0.005,
        "threads": usable_cores(),
        "recipe": "none",
    }
    chosen = {name: value for name, value in automatic.items() if getattr(config, name) is None}
    model = config.model
    if model.dt_rank is None:
        model = replace(model, dt_rank=ceil(model.width / 16))
    return replace(
        config, m=tokens.m, M=tokens.M, s=tokens.s, mode=mode, fingerprint=manifest.fingerprint, model=model, **chosen
    )


def _mode(config: TrainConfig, *, many: bool) -> Mode:
    if many:
        if config.mode not in (None, "graphs"):
            raise ConfigError(f"mode {config.mode} is for one large graph; {config.store} holds many: leave it out")
        return "graphs"
    if config.mode == "graphs":
        raise ConfigError(f"mode graphs needs a store of many graphs; {config.store} holds one: use full or batch")
    return config.mode or "full"
