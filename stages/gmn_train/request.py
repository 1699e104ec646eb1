"""From the command line to a TrainConfig: defaults < preset < TOML < flags and --set."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gmn_pipeline.config import load_config, read_toml
from gmn_pipeline.errors import ConfigError, nearest
from gmn_train.model.config import PRESETS, ModelConfig
from gmn_train.train_config import TrainConfig


def read_request(given: Mapping[str, Any], preset: str, file: Path | None, assignments: list[str]) -> TrainConfig:
    """The settings of a run, checked; also sets the number of threads before anything computes."""
    if preset not in PRESETS:
        raise ConfigError(
            f"there is no preset '{preset}'; allowed: {', '.join(PRESETS)}{nearest(preset, list(PRESETS))}"
        )
    values = {f"model.{key}": value for key, value in PRESETS[preset].items()}
    for key in _keys(read_toml(file) if file else {}):
        values.pop(key, None)  # what the file says wins over the preset
    values.update({name: value for name, value in given.items() if value is not None})
    values.update(_assignment(text) for text in assignments)
    config = load_config(TrainConfig, file, values)
    use_threads(config.threads)
    return config


def _keys(table: Mapping[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key, value in table.items():
        found += _keys(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]
    return found


def _assignment(text: str) -> tuple[str, Any]:
    """`key=value`; the value as TOML reads it, or as text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set {text}: write KEY=VALUE, such as lr=0.01")
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def use_threads(threads: int | None) -> None:
    """One number for torch's threads and for our kernels, which follow torch's."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)


def print_settings() -> None:
    """Every setting with its default and meaning."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("setting", "default", "meaning"):
        table.add_column(column, overflow="fold", no_wrap=column == "setting")
    for cls, prefix in ((TrainConfig, ""), (ModelConfig, "model.")):
        for item in fields(cls):  # type: ignore[arg-type]
            if item.name != "model":
                default = "required" if item.default is MISSING else "" if item.default is None else str(item.default)
                table.add_row(prefix + item.name, default, item.metadata["help"])
    Console().print(table)
