"""A run's config.toml repeats it bit for bit: every model, runs with and without a recipe, and in grains."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.cli import run_app
from gmn_train.cli import app
from gmn_train.model.tables import MODELS
from gmn_train.runs.folder import RunFolder
from tests.stores import ring_graph
from tests.train.model_stores import model_store

SMALL = ["--set", "model.width=16", "--set", "model.states=2", "--set", "model.node_layers=2", "--epochs", "2"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Called minesweeper, so that it has a recipe."""
    path = tmp_path_factory.mktemp("s") / "ring.zarr"
    graph, tokens = ring_graph(40, 40, edge_features=True), TokenSettings(2, 2, 2)
    orderings = ("degree", "pagerank")
    return model_store(path, graph, tokens, laplacian=2, orderings=orderings, dataset="minesweeper").path


def call(*arguments: object) -> None:
    with pytest.raises(SystemExit) as end:
        run_app(app, [*map(str, arguments), "--quiet"])
    assert end.value.code == 0


def repeats(store: Path, folder: Path, *arguments: object) -> RunFolder:
    """Train, train again from what that left, and compare."""
    call("run", "--store", store, *arguments, "--run-dir", folder / "one")
    call("run", "--config", folder / "one" / "config.toml", "--run-dir", folder / "two")
    one, two = RunFolder(folder / "one"), RunFolder(folder / "two")
    assert (one.path / "config.toml").read_bytes() == (two.path / "config.toml").read_bytes()
    first, second = load_file(one.best), load_file(two.best)
    assert first.keys() == second.keys()
    assert all(first[name].equal(second[name]) for name in first)
    return one


@pytest.mark.parametrize("name", MODELS)
def test_every_model(store: Path, tmp_path: Path, name: str) -> None:
    config = repeats(store, tmp_path, "--model", name, *SMALL).config()
    assert (config.model.name, config.recipe) == (name, "minesweeper")


def test_without_a_recipe(store: Path, tmp_path: Path) -> None:
    config = repeats(store, tmp_path, "--recipe", "none", *SMALL).config()
    assert (config.recipe, config.m, config.s, config.lr) == ("none", 2, 1, 0.01)


def test_with_a_recipe(store: Path, tmp_path: Path) -> None:
    config = repeats(store, tmp_path, *SMALL).config()
    assert (config.recipe, config.m, config.s, config.lr) == ("minesweeper", 1, 1, 0.01)
    assert config.model.feature_mask == 0.15


def test_in_grains(store: Path, tmp_path: Path) -> None:
    config = repeats(store, tmp_path, "--procs", 1, "--mode", "batch", "--set", "batch_nodes=20", *SMALL).config()
    assert (config.procs, config.grains) == (1, 8)


def test_a_plain_list_of_settings_says_that_some_follow_from_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_app(app, ["settings"])
    assert "`gmn-train settings --store STORE` shows what a run takes" in capsys.readouterr().out
