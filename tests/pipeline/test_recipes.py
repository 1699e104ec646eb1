"""Recipes: every one fits both commands, and flags and files win over them."""

import pytest

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.config import load_config
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.recipes import choose_recipe, read_recipe, recipe_names
from gmn_prep.datasets import DATASETS
from gmn_prep.tokenize_settings import TokenizeConfig
from gmn_prep.tokenize_settings import read_request as read_tokenize
from gmn_train.settings.request import read_request
from gmn_train.settings.train_config import TrainConfig
from tests.stores import ring_graph, write_store


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_fits_both_commands(name):
    recipe = read_recipe(name)
    assert name in DATASETS
    load_config(TokenizeConfig, flags={"dataset": name}, base=recipe.tokenize)
    load_config(TrainConfig, flags={"store": "x.zarr"}, base=recipe.train)


@pytest.mark.parametrize("name", [name for name, line in DATASETS.items() if line.raw is not None])
def test_every_public_dataset_has_a_recipe(name):
    assert name in recipe_names()


def test_flags_win_over_file_over_recipe_over_defaults(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("M = 3\n")
    recipe = read_recipe("minesweeper").tokenize
    plain = read_tokenize(None, {"dataset": "minesweeper"}, None)
    assert (plain.m, plain.M, plain.s) == (recipe["m"], recipe["M"], recipe["s"])
    told = read_tokenize(file, {"dataset": "minesweeper", "m": 7}, None)
    assert (told.m, told.M, told.s) == (7, 3, recipe["s"])
    assert read_tokenize(None, {"dataset": "minesweeper"}, "none") == TokenizeConfig(dataset="minesweeper")


def test_a_run_takes_the_recipe_of_the_stores_dataset(tmp_path):
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1), dataset="minesweeper").path
    recipe = read_recipe("minesweeper").train
    assert read_request({"store": store}).epochs == recipe["epochs"]
    assert read_request({"store": store, "epochs": 3}).epochs == 3
    assert read_request({"store": store}, recipe="none").epochs is None
    assert read_request({"store": store}, preset="paper").epochs is None
    control = read_request({"store": store}, model="mpnn")
    assert (control.epochs, control.model.node_layers) == (recipe["epochs"], recipe["model"]["node_layers"])
    assert not control.model.uses_tokens
    assert not control.model.node_scan
    assert read_request({"store": store}, None, ["model.node_scan=true"], model="mpnn").model.node_scan


def test_unknown_names_are_told():
    with pytest.raises(ConfigError, match="did you mean 'minesweeper'"):
        read_recipe("minesweepr")
    assert choose_recipe(None, "my-own-file") is None
