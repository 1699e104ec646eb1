"""Recipes: what to tokenize and train with for a dataset, one TOML file each, values with their source.

    measured = ""   what was measured with it, and by which command; or `Not measured.`
    [tokenize]      settings of `gmn-prep tokenize`
    [train]         settings of `gmn-train run`
    [train.model]   the model's

Both commands apply a known dataset's recipe automatically; a config file and flags override it. `--recipe` also takes a
path to a file of the user's own, such as `gmn-train search` writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gmn_pipeline.console.config import read_toml
from gmn_pipeline.errors import ConfigError, nearest

NO_RECIPE = "none"
FOLDER = Path(__file__).parent
KEYS = ("measured", "tokenize", "train")
NOT_MEASURED = "Not measured."


@dataclass(frozen=True)
class Recipe:
    """One file."""

    name: str
    """Of its dataset; the path of a user's own."""
    tokenize: Mapping[str, Any]
    train: Mapping[str, Any]
    measured: str = NOT_MEASURED
    """One line: the figure and the command that gave it, or that there is none."""


def recipe_names() -> list[str]:
    """All recipes, by the name of their dataset."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def read_recipe(name: str) -> Recipe:
    """A recipe by name or by path; ConfigError names the nearest where there is none."""
    names = recipe_names()
    own = name not in names and (name.endswith(".toml") or "/" in name)
    if name not in names and not own:
        raise ConfigError(
            f"there is no recipe '{name}'; allowed: {NO_RECIPE}, a path to a .toml file, {', '.join(names)}"
            f"{nearest(name, names)}"
        )
    table = read_toml(Path(name) if own else FOLDER / f"{name}.toml")
    for key, value in table.items():
        if key not in KEYS or isinstance(value, Mapping) == (key == "measured"):
            raise ConfigError(
                f"{name} is not a recipe: '{key}' is not its key; a recipe has the tables [tokenize] and [train], and "
                f"a text `measured`{nearest(key, KEYS)}"
            )
    return Recipe(name, table.get("tokenize", {}), table.get("train", {}), str(table.get("measured", NOT_MEASURED)))


def choose_recipe(asked: str | None, dataset: str | None) -> Recipe | None:
    """The recipe that was asked for, the dataset's own where none was, or None (`none`, or none for this dataset)."""
    if asked is not None:
        return None if asked == NO_RECIPE else read_recipe(asked)
    name = (dataset or "").strip().lower().replace("_", "-")
    return read_recipe(name) if name in recipe_names() else None
