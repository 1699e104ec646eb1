"""Recipes: every one fits both commands, and flags and files win over them."""

import re

import pytest

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.config import Layer, load_config
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.recipes import choose_recipe, read_recipe, recipe_names
from gmn_prep.datasets import DATASETS
from gmn_prep.tokenize_settings import TokenizeConfig
from gmn_prep.tokenize_settings import read_request as read_tokenize
from gmn_train.settings.request import read_request
from gmn_train.settings.rule import SCHEDULES
from gmn_train.settings.run_settings import TrainConfig
from tests.stores import ring_graph, write_store


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_fits_both_commands(name):
    recipe = read_recipe(name)
    assert name in DATASETS
    load_config(TokenizeConfig, Layer("recipe", recipe.tokenize), Layer("flags", {"dataset": name}))
    load_config(TrainConfig, Layer("recipe", recipe.train), Layer("flags", {"store": "x.zarr"}))


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
    assert read_request({"store": store, "s": 1, "m": 1}).config.epochs == recipe["epochs"]
    assert read_request({"store": store, "epochs": 3}).config.epochs == 3
    plain = read_request({"store": store, "recipe": "none"})
    assert (plain.config.epochs, plain.config.recipe) == (SCHEDULES["full"]["epochs"], "none")
    control = read_request({"store": store, "model.name": "mpnn"})
    assert (control.config.epochs, control.config.model.node_layers) == (
        recipe["epochs"], recipe["model"]["node_layers"],
    )  # fmt: skip
    assert "tokens" not in control.config.model.reads
    assert not control.config.model.node_scan
    assert control.sources["epochs"] == "recipe minesweeper"
    assert control.sources["model.node_scan"] == "model mpnn"
    assert control.sources["m"] == "recipe minesweeper"
    assert control.sources["M"] == "the store"
    assert "model.readout" not in control.sources  # the default


def test_what_is_said_twice_or_undoes_the_model_is_refused(tmp_path):
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1)).path
    with pytest.raises(ConfigError, match=r"lr is given twice, by --lr and by --set lr=0.2"):
        read_request({"store": store, "lr": 0.1}, None, ["lr=0.2"])
    with pytest.raises(ConfigError, match=r"mpnn is the model with token_blocks = none, and --set model.token_blocks"):
        read_request({"store": store, "model.name": "mpnn"}, None, ["model.token_blocks=between"])
    file = tmp_path / "c.toml"
    file.write_text("[model]\nnode_scan = true\n")
    with pytest.raises(ConfigError, match=r"mpnn is the model with node_scan = False, and .*c.toml makes it True"):
        read_request({"store": store, "model.name": "mpnn"}, file)
    assert read_request({"store": store, "model.name": "MPNN"}).config.model.name == "mpnn"


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_says_what_was_measured_and_how(name):
    measured = read_recipe(name).measured
    assert re.match(r"Not measured\.|Measured: .*\d\.\d.* by `gmn-train \w+ --.+`\.$", measured), measured


def test_a_recipe_of_the_users_own_is_a_path(tmp_path):
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1), dataset="minesweeper").path
    own = tmp_path / "mine.toml"
    own.write_text("measured = 'Measured: 0.9'\n[train]\nepochs = 7\n[train.model]\nname = 'mpnn'\n")
    request = read_request({"store": store, "recipe": str(own)})
    assert (request.config.epochs, request.config.model.name, request.config.recipe) == (7, "mpnn", str(own))
    assert request.measured == f"recipe {own}: Measured: 0.9"
    assert read_request({"store": store, "recipe": "none"}).measured is None
    assert read_request({"store": store, "m": 1, "s": 1}).measured.startswith("recipe minesweeper: Measured: ")
    with pytest.raises(ConfigError, match=r"there is no config file .*none\.toml"):
        read_request({"store": store, "recipe": str(tmp_path / "none.toml")})
    own.write_text("epochs = 7\n")
    with pytest.raises(ConfigError, match=r"is not a recipe: 'epochs' is not its key"):
        read_request({"store": store, "recipe": str(own)})


def test_unknown_names_are_told():
    with pytest.raises(ConfigError, match="did you mean 'minesweeper'"):
        read_recipe("minesweepr")
    assert choose_recipe(None, "my-own-file") is None
