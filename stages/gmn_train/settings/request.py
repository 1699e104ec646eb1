"""From the command line to a TrainConfig: defaults < preset < recipe < model < TOML < flags and --set."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gmn_pipeline.console.config import load_config, merge_tables, read_toml
from gmn_pipeline.console.output import two_columns
from gmn_pipeline.errors import ConfigError, StoreError
from gmn_pipeline.recipes import Recipe, choose_recipe
from gmn_pipeline.store.reader import TokenStore
from gmn_train.settings.model_settings import ModelConfig, preset_changes
from gmn_train.settings.models import MODELS, model_changes
from gmn_train.settings.train_config import TrainConfig

DEFAULT_PRESET = "default"


def read_request(
    given: Mapping[str, Any],
    file: Path | None = None,
    assignments: Sequence[str] = (),
    *,
    preset: str | None = None,
    recipe: str | None = None,
    model: str | None = None,
) -> TrainConfig:
    """The settings of a run, checked; also sets the number of threads before anything computes.

    The recipe of the store's dataset is taken unless a recipe or a preset is named.
    """
    told = read_toml(file) if file else {}
    base = {"model": preset_changes(preset or DEFAULT_PRESET)}
    found = _recipe(recipe, preset, given.get("store") or told.get("store"))
    if found is not None:
        base = merge_tables(base, found.train)
    if model is not None:
        base = merge_tables(base, {"model": model_changes(model)})
    flags = {name: value for name, value in given.items() if value is not None}
    flags.update(_assignment(text) for text in assignments)
    config = load_config(TrainConfig, file, flags, base)
    use_threads(config.threads)
    return config


def _recipe(asked: str | None, preset: str | None, store: Any) -> Recipe | None:
    """By name, or by the dataset that the store was made from; a store that cannot be read is told of later."""
    if asked is not None or preset is not None or store is None:
        return choose_recipe(asked, None)
    try:
        dataset = TokenStore.open(Path(store)).manifest.dataset.get("dataset")
    except StoreError:
        return None
    return choose_recipe(None, str(dataset))


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


def print_models() -> None:
    """Every name that --model takes."""
    Console().print(two_columns("", [(name, line) for name, (line, _) in MODELS.items()]))


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
