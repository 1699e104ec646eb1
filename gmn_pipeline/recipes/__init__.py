"""Recipes: what to tokenize and train with for a dataset, one TOML file each, values with their source.

    [tokenize]      settings of `gmn-prep tokenize`
    [train]         settings of `gmn-train run`
    [train.model]   the model's

Both commands apply a known dataset's recipe automatically; a config file and flags override it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gmn_pipeline.console.config import read_toml
from gmn_pipeline.errors import ConfigError, nearest

NO_RECIPE = "none"
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """One file."""

    name: str
    tokenize: Mapping[str, Any]
    train: Mapping[str, Any]


def recipe_names() -> list[str]:
    """All recipes, by the name of their dataset."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def read_recipe(name: str) -> Recipe:
    """A recipe by name; ConfigError names the nearest where there is none."""
    names = recipe_names()
    if name not in names:
        raise ConfigError(
            f"there is no recipe '{name}'; allowed: {NO_RECIPE}, {', '.join(names)}{nearest(name, names)}"
        )
    table = read_toml(FOLDER / f"{name}.toml")
    return Recipe(name, table.get("tokenize", {}), table.get("train", {}))


def choose_recipe(asked: str | None, dataset: str | None) -> Recipe | None:
    """The recipe that was asked for, the dataset's own where none was, or None (`none`, or none for this dataset)."""
    if asked is not None:
        return None if asked == NO_RECIPE else read_recipe(asked)
    name = (dataset or "").strip().lower().replace("_", "-")
    return read_recipe(name) if name in recipe_names() else None
