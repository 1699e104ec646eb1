"""From the command line to the settings of a run: class defaults < recipe < model < TOML file < flags and --set.

Settings that nobody gave are chosen from the store. Nothing heavy is imported here, so mistakes are reported at once.
"""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil
from pathlib import Path
from typing import Any

from gmn_pipeline.console.config import (
    Layer,
    as_table,
    flatten,
    load_config,
    nest,
    read_toml,
    sources_of,
    walk_fields,
)
from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.errors import ConfigError, TrainError, nearest
from gmn_pipeline.place import StorePlace, as_place
from gmn_pipeline.recipes import NO_RECIPE, Recipe, choose_recipe
from gmn_pipeline.store.files.manifest_file import open_storage, read_manifest
from gmn_pipeline.store.format.manifest import GraphFacts, Manifest
from gmn_train.model.tables import MODELS
from gmn_train.ranks.environment import default_grains, processes_here
from gmn_train.settings.data_facts import measure_facts
from gmn_train.settings.model_settings import check_fixed
from gmn_train.settings.rule import EVALUATIONS, SCHEDULES, choose_mode, choose_settings
from gmn_train.settings.run_settings import CHOSEN, Mode, TrainConfig

CHOSEN_FROM = {
    "threads": "this machine",
    "grains": "the processes",
    **dict.fromkeys(("epochs", "lr", "warmup", "eval_every"), "the schedule"),
    **dict.fromkeys(("model.scan_width", "model.dt_rank"), "the width"),
}
"""By dotted key, what decides a setting that nobody gave and no rule chose. All others follow from the store."""


@dataclass(frozen=True)
class Request:
    """The settings of a run, with nothing left to choose, and where each came from."""

    config: TrainConfig
    sources: Mapping[str, str]
    """By dotted key: `recipe minesweeper`, `--lr`, `the store`; a key that is missing has its default."""
    given: Mapping[str, Any]
    """By dotted key, what the config file and the command line say."""
    measured: str | None = None
    """What was measured with the recipe, in one line; None without a recipe."""


@dataclass(frozen=True)
class _Asked:
    """What a config file and a command line say."""

    command: Mapping[str, Any]
    """By dotted key."""
    options: Mapping[str, str]
    """By dotted key of the command, the option that gave it."""
    table: Mapping[str, Any]
    """Of the file."""
    file: Path | None

    @classmethod
    def read(cls, given: Mapping[str, Any], file: Path | None, assignments: Sequence[str]) -> "_Asked":
        """Raises ConfigError where a key is given twice, and for a file that cannot be read."""
        command = {key: value for key, value in given.items() if value is not None}
        options = {key: _option(key) for key in command}
        for text in assignments:
            key, value = _assignment(text)
            if key in command:
                raise ConfigError(f"{key} is given twice, by {options[key]} and by --set {text}; keep one of them")
            command[key], options[key] = value, f"--set {key}"
        return cls(command, options, read_toml(file) if file else {}, file)

    @property
    def wanted(self) -> dict[str, Any]:
        """All of it, by dotted key."""
        return flatten(nest(self.table)) | dict(self.command)

    @property
    def repeats(self) -> bool:
        """Whether the file is a run's own, with every setting. What it lacks has the class's default."""
        return set(CHOSEN) <= self.table.keys()

    @property
    def decided(self) -> Collection[str]:
        """Keys that the user decided on: those of a run's own file once another model is asked for."""
        return self.command if self.repeats and "model.name" not in self.command else self.wanted

    def recipe(self, manifest: Manifest | None) -> Recipe | None:
        """A run's own file has taken what its recipe says, which may be gone since."""
        if self.repeats and "recipe" not in self.command:
            return None
        dataset = None if manifest is None else str(manifest.dataset.get("dataset"))
        return choose_recipe(self.wanted.get("recipe"), dataset)

    def layers(self, recipe: Recipe | None) -> list[Layer]:
        """From the recipe to the command line, and the names of recipe and model above all."""
        recipe_values, wanted = {} if recipe is None else recipe.train, self.wanted
        model = MODELS.find(str(({"model.name": "gmn"} | flatten(recipe_values) | wanted)["model.name"]))
        name = recipe.name if recipe else wanted.get("recipe") if self.repeats else NO_RECIPE
        return [
            Layer(f"recipe {name}", recipe_values),
            Layer(f"model {model.name}", {"model": {**model.starts, **model.fixes}}),
            Layer(str(self.file), self.table),
            *(Layer(self.options[key], {key: value}) for key, value in self.command.items()),
            Layer("the request", {"model.name": model.name, "recipe": name}),
        ]


def read_request(given: Mapping[str, Any], file: Path | None = None, assignments: Sequence[str] = ()) -> Request:
    """The settings that flags (by dotted key, None where not given), a config file and --set make together.

    Raises ConfigError (an unknown or repeated key, a value that is not allowed, a setting that undoes the model) and
    StoreError.
    """
    asked = _Asked.read(given, file, assignments)
    wanted = asked.wanted
    manifest = read_manifest(as_place(wanted["store"])) if "store" in wanted else None
    recipe = asked.recipe(manifest)
    layers = asked.layers(recipe)
    sources = {"recipe": "the store"} | sources_of(*layers[:-1])
    config = load_config(TrainConfig, *layers)
    assert manifest is not None, "load_config refuses settings without a store"
    _check_one_plan(config)
    if not asked.repeats:
        facts = measure_facts(open_storage(config.store), manifest, config.split)
        chosen = choose_settings(facts, config, sources)
        config = load_config(TrainConfig, Layer("the data", chosen), *layers)
        sources |= dict.fromkeys(chosen, "the data")
    _check_model(config, sources, asked.decided)
    if "model.order" in wanted:
        _check_order(config, manifest, sources["model.order"])
    resolved = resolve(config, manifest, in_processes="procs" in asked.command)
    before, after = flatten(as_table(config)), flatten(as_table(resolved))
    sources |= {key: CHOSEN_FROM.get(key, "the store") for key in after if key not in before}
    measured = None if recipe is None else f"recipe {recipe.name}: {recipe.measured}"
    return Request(resolved, sources, wanted, measured)


def read_values(
    given: Mapping[str, Any], file: Path | None = None, assignments: Sequence[str] = ()
) -> dict[str, tuple[Any, str]]:
    """By dotted key, the value of every setting and its source. Without a store, what follows from one is None.

    Raises ConfigError and StoreError as `read_request` does.
    """
    asked = _Asked.read(given, file, assignments)
    if "store" in asked.wanted:
        request = read_request(given, file, assignments)
        values, sources = flatten(as_table(request.config)), dict(request.sources)
    else:
        *layers, names = asked.layers(asked.recipe(None))
        config, sources = load_config(TrainConfig, Layer("", {"store": "none"}), *layers, names), sources_of(*layers)
        _check_model(config, sources, asked.decided)
        values = flatten(as_table(config)) | {"store": None, "recipe": asked.wanted.get("recipe")}
        chosen = (*CHOSEN, *CHOSEN_FROM, "recipe")
        sources |= {key: CHOSEN_FROM.get(key, "the store") for key in chosen if values.get(key) is None}
    return {key: (values.get(key), sources.get(key, "default")) for key, _ in walk_fields(TrainConfig)}


def _check_one_plan(config: TrainConfig) -> None:
    """ConfigError for the settings of a run that was trained longer: one plan cannot repeat several."""
    if config.extended_from:
        first, *later = (*config.extended_from, config.epochs)
        raise ConfigError(
            f"these settings are of a run of {first} epochs that was trained longer; to repeat it, leave extended_from "
            f"out, set epochs = {first}, then gmn-train resume RUN --epochs {', then '.join(map(str, later))}"
        )


def _check_model(config: TrainConfig, sources: Mapping[str, str], decided: Collection[str]) -> None:
    """ConfigError where a setting undoes what the model is."""
    of_model = {key.removeprefix("model."): source for key, source in sources.items()}
    check_fixed(config.model, of_model, [key.removeprefix("model.") for key in decided])


def _check_order(config: TrainConfig, manifest: Manifest, source: str) -> None:
    """ConfigError for an ordering that the store lacks, even where no node scan would read it."""
    order, there = config.model.order, tuple(dict.fromkeys(("random", "degree", *manifest.orderings)))
    if order not in there:
        raise ConfigError(
            f"{source} is '{order}', which {config.store} does not have; allowed: {', '.join(there)}"
            f"{nearest(order, there)}"
        )


def _option(key: str) -> str:
    """What a user types to set a key."""
    has_flag = any(key == item.name and item.metadata["group"] != "Model" for item in fields(TrainConfig))
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


def resolve(config: TrainConfig, manifest: Manifest, *, in_processes: bool = False) -> TrainConfig:
    """The settings with nothing left to choose.

    in_processes: whether a number of processes was asked for, be it 1. Then a step is cut as for several of them. A
    `procs` of 1 in a file does not ask: every run's config.toml has it.
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
        "threads": max(1, usable_cores() // processes_here(config.procs)),
        "grains": default_grains(config.procs) if in_processes or config.procs > 1 else None,
        "recipe": "none",
    }
    automatic["eval_every"] = max(1, (config.epochs or automatic["epochs"]) // EVALUATIONS)
    chosen = {name: value for name, value in automatic.items() if getattr(config, name) is None}
    if config.grains == 1:
        chosen["grains"] = None  # one grain is a step in one piece
    if config.procs > (grains := chosen.get("grains", config.grains) or 1):
        raise ConfigError(
            f"procs is {config.procs:,} and grains is {grains}; every process needs a grain: give more grains"
        )
    model = replace(config.model, scan_width=config.model.scanned_width)
    if model.dt_rank is None:
        model = replace(model, dt_rank=ceil(model.scanned_width / 16))
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
    return config.mode or choose_mode(graph.nodes)


def on_another_store(config: TrainConfig, store: StorePlace, manifest: Manifest) -> TrainConfig:
    """A run's settings to read another store with, which may hold one graph where the run's had many, or many."""
    of_one: Mode | None = "full" if config.mode == "graphs" else config.mode
    mode: Mode | None = "graphs" if manifest.graph.many else of_one
    return replace(config, store=store, fingerprint=manifest.fingerprint, mode=mode)


def parse_numbers(text: str | None, what: str) -> list[int]:
    """`0,1,5-8` as a list of numbers, empty where nothing was given; ConfigError where it is no list."""
    numbers: list[int] = []
    for part in text.split(",") if text is not None else ():
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ConfigError(f"--{what} is '{text}'; give numbers and ranges, such as 0,1,2 or 0-9")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
