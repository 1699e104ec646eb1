"""From the command line to the settings of a run: class defaults < recipe < model < TOML file < flags and --set.

Settings that nobody gave are chosen from the store. Nothing heavy is imported here, so mistakes are reported at once.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil
from pathlib import Path
from typing import Any

from gmn_pipeline.console.config import Layer, as_table, flatten, load_config, nest, read_toml, sources_of
from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.errors import ConfigError, TrainError
from gmn_pipeline.recipes import NO_RECIPE, choose_recipe
from gmn_pipeline.store.manifest import GraphFacts, Manifest
from gmn_pipeline.store.manifest_file import read_manifest
from gmn_train.model.tables import MODELS
from gmn_train.settings.model_settings import check_fixed
from gmn_train.settings.run_settings import Mode, TrainConfig


@dataclass(frozen=True)
class Request:
    """The settings of a run, with nothing left to choose, and where each came from."""

    config: TrainConfig
    sources: Mapping[str, str]
    """By dotted key: `recipe minesweeper`, `--lr`, `the store`; a key that is missing has its default."""


def read_request(given: Mapping[str, Any], file: Path | None = None, assignments: Sequence[str] = ()) -> Request:
    """The settings that flags (by dotted key, None where not given), a config file and --set make together.

    Raises ConfigError (an unknown or repeated key, a value that is not allowed, a setting that undoes the model) and
    StoreError.
    """
    command = _command_line(given, assignments)
    table = read_toml(file) if file else {}
    wanted = flatten(nest(table)) | command
    manifest = read_manifest(Path(wanted["store"])) if "store" in wanted else None
    dataset = None if manifest is None else str(manifest.dataset.get("dataset"))
    recipe = choose_recipe(wanted.get("recipe"), dataset)
    recipe_values = {} if recipe is None else recipe.train
    name = str(({"model.name": "gmn"} | flatten(recipe_values) | wanted)["model.name"])
    model = MODELS.find(name)
    layers = [
        Layer(f"recipe {recipe.name}" if recipe else "no recipe", recipe_values),
        Layer(f"model {model.name}", {"model": {**model.starts, **model.fixes}}),
        Layer(str(file), table),
        *(Layer(_option(key), {key: value}) for key, value in command.items()),
    ]
    sources = {"recipe": "the store"} | sources_of(*layers)
    names = Layer("the request", {"model.name": model.name, "recipe": recipe.name if recipe else NO_RECIPE})
    config = load_config(TrainConfig, *layers, names)
    assert manifest is not None, "load_config refuses settings without a store"
    if "model.mpnn" not in sources and manifest.graph.edge_attr is not None:
        config = replace(config, model=config.model.changed(mpnn="gine"))  # the default does not read edge features
        sources["model.mpnn"] = "the store"
    check_fixed(config.model, {key.removeprefix("model."): source for key, source in sources.items()})
    resolved = resolve(config, manifest)
    before, after = flatten(as_table(config)), flatten(as_table(resolved))
    return Request(resolved, sources | {key: "the store" for key in after if key not in before})


def _command_line(given: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Flags and --set as one table of dotted keys; ConfigError where a key is given twice."""
    command = {key: value for key, value in given.items() if value is not None}
    for text in assignments:
        key, value = _assignment(text)
        if key in command:
            raise ConfigError(f"{key} is given twice, by {_option(key)} and by --set {text}; keep one of them")
        command[key] = value
    return command


def _option(key: str) -> str:
    has_flag = key in (item.name for item in fields(TrainConfig))
    return "--model" if key == "model.name" else "--" + key.replace("_", "-") if has_flag else f"--set {key}"


def _assignment(text: str) -> tuple[str, Any]:
    """`key=value`; the value as TOML reads it, or as text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set {text}: write KEY=VALUE, such as lr=0.01")
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


LARGE_GRAPH = 50_000
"""Nodes of a graph beyond which one step per epoch learns too slowly: ogbn-arxiv in full steps was at accuracy 0.018
after 300 s, in batches at 0.73 after 209 s (two cores, stand-in features)."""
SCHEDULES: dict[Mode, dict[str, Any]] = {
    "full": {"epochs": 200, "lr": 0.005, "warmup": 10},
    "batch": {"epochs": 30, "lr": 0.002, "warmup": 1},
    "graphs": {"epochs": 100, "lr": 0.001, "warmup": 10},
}
"""By mode: many steps per epoch need fewer epochs and a lower rate."""


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
    mode = _mode(config, manifest.graph)
    automatic: dict[str, Any] = {
        **SCHEDULES[mode],
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


def _mode(config: TrainConfig, graph: GraphFacts) -> Mode:
    if graph.many:
        if config.mode not in (None, "graphs"):
            raise ConfigError(f"mode {config.mode} is for one large graph; {config.store} holds many: leave it out")
        return "graphs"
    if config.mode == "graphs":
        raise ConfigError(f"mode graphs needs a store of many graphs; {config.store} holds one: use full or batch")
    return config.mode or ("batch" if graph.nodes > LARGE_GRAPH else "full")


def parse_numbers(text: str | None, what: str) -> list[int]:
    """`0,1,5-8` as a list of numbers, empty where nothing was given; ConfigError where it is no list."""
    numbers: list[int] = []
    for part in text.split(",") if text is not None else ():
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ConfigError(f"--{what} is '{text}'; give numbers and ranges, such as 0,1,2 or 0-9")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
