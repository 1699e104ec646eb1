"""Recipes: every one fits both commands, and flags and files win over them."""

import re

import pytest
import tomli_w

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.config import Layer, as_table, load_config
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.recipes import choose_recipe, read_recipe, recipe_names
from gmn_prep.datasets import DATASETS
from gmn_prep.tokenize_settings import TokenizeConfig
from gmn_prep.tokenize_settings import read_request as read_tokenize
from gmn_train.model.tables import MODELS
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
    with pytest.raises(ConfigError, match=r"model mpnn requires token_blocks = none, but --set model.token_blocks"):
        read_request({"store": store, "model.name": "mpnn"}, None, ["model.token_blocks=between"])
    file = tmp_path / "c.toml"
    file.write_text("[model]\nnode_scan = true\n")
    with pytest.raises(ConfigError, match=r"mpnn requires node_scan = false, but .*c.toml sets it to true; remove"):
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


@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        (
            "gmn",
            ["model.token_blocks=none", "model.node_scan=false"],
            "a node scan, without which it is the control, mpnn; set",
        ),
        ("gmn-no-pe", ["model.token_blocks=[]", "model.node_scan=false"], "needs tokens or a node scan"),
        ("gmn", ["model.token_blocks=12", "model.node_scan=false"], "needs tokens or a node scan"),
        ("gmn-one-direction", ["model.token_blocks=none", "model.node_scan=false"], "needs a scan"),
        ("gmn-one-direction", ["model.readout=mean", "model.token_layers=0", "model.node_scan=false"], "needs a scan"),
        ("gmn-token-mean", ["model.token_blocks=none"], "needs tokens; set model.token_blocks to between or input"),
        (
            "gmn-node-scan",
            ["model.order=pagerank"],
            "requires order = degree, but --set model.order sets it",
        ),
        ("gps+mamba", ["model.mpnn=none"], "needs message passing; set model.mpnn to gcn"),
        ("gps", ["model.mpnn=gcn-edges"], "no mpnn = gcn-edges; set it to one of none, gcn, gatedgcn, gine"),
    ],
)
def test_settings_that_leave_nothing_of_a_model_are_refused(tmp_path, model, changes, message):
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1)).path
    with pytest.raises(ConfigError, match=re.escape(message)):
        read_request({"store": store, "model.name": model}, None, changes)


def test_the_settings_of_another_model_do_not_make_a_gmn(tmp_path):
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1)).path
    file = tmp_path / "config.toml"
    file.write_text('[model]\nname = "mpnn"\ntoken_blocks = "none"\nnode_scan = false\n')
    assert read_request({"store": store}, file).config.model.name == "mpnn"
    with pytest.raises(ConfigError, match="model gmn needs tokens or a node scan"):
        read_request({"store": store, "model.name": "gmn"}, file)


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_and_any_depth_leave_gmn_as_it_is(tmp_path, name):
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 1, 1)).path
    given = {"store": store, "recipe": name, "m": 1, "M": 1, "s": 1, "mode": "full"}
    for model in (name for name, entry in MODELS.items() if entry.code == MODELS["gmn"].code):
        assert read_request({**given, "model.name": model}).config.model.name == model


def test_an_ordering_that_the_store_lacks_is_refused_even_if_nothing_reads_it(tmp_path):
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1)).path
    with pytest.raises(ConfigError, match=r"--set model.order is 'degre', .* allowed: random, degree; did you mean"):
        read_request({"store": store}, None, ["model.node_scan=false", "model.order=degre"])
    assert read_request({"store": store}, None, ["model.order=random"]).config.model.order == "random"


def test_every_value_names_its_source(tmp_path):
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1)).path
    sources = read_request({"store": store, "epochs": 3}, None, ["weight_decay=0.1", "model.width=32"]).sources
    assert (sources["epochs"], sources["weight_decay"], sources["model.width"]) == (
        "--epochs", "--set weight_decay", "--set model.width",
    )  # fmt: skip
    assert (sources["threads"], sources["warmup"], sources["eval_every"]) == (
        "this machine", "the schedule", "the schedule",
    )  # fmt: skip
    assert (sources["model.dt_rank"], sources["M"]) == ("the width", "the store")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model=3", "'model' in --set model is a table, not a value; set model.NAME instead"),
        ("model.token_blocks=foo", "model.token_blocks = 'foo' is not allowed: give input, between, none, a whole "
         "number or a list of whole numbers"),
        ("model.node_scan=foo", "model.node_scan = 'foo' is not allowed: give true, false or a list of whole numbers"),
    ],
)  # fmt: skip
def test_a_value_that_is_not_allowed(tmp_path, change, message):
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1)).path
    with pytest.raises(ConfigError, match=re.escape(message)):
        read_request({"store": store}, None, [change])


def test_a_runs_own_file_needs_no_recipe(tmp_path):
    """The recipe was taken when the run was made. It may say what the run does not, or be gone."""
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1)).path
    recipe, file = tmp_path / "mine.toml", tmp_path / "config.toml"
    recipe.write_text("[train]\ngrains = 4\n")
    made = read_request({"store": store, "recipe": str(recipe)}, None, ["grains=1"]).config
    file.write_bytes(tomli_w.dumps(as_table(made)).encode())
    assert read_request({}, file).config == made
    recipe.unlink()
    again = read_request({}, file)
    assert again.config == made
    assert (again.config.recipe, again.config.grains, again.measured) == (str(recipe), None, None)


def test_a_run_whose_recipe_left_no_room_for_tokens_is_repeated(tmp_path):
    """The recipe reads tokens after every second layer but the last, and here there are two."""
    store = write_store(tmp_path / "a.zarr", ring_graph(20, 20), TokenSettings(1, 2, 1), dataset="minesweeper").path
    made, file = read_request({"store": store}, None, ["model.node_layers=2"]).config, tmp_path / "config.toml"
    file.write_bytes(tomli_w.dumps(as_table(made)).encode())
    assert read_request({}, file).config == made
    with pytest.raises(ConfigError, match="model gmn-no-pe needs tokens or a node scan"):
        read_request({"model.name": "gmn-no-pe"}, file, ["model.encodings=none"])
