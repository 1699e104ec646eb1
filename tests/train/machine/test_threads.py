"""The number of threads changes no bit of a run, in any mode."""

from pathlib import Path

import pytest
import torch

from gmn_pipeline import TokenSettings, TokenStore
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_train.settings.model_settings import ModelConfig
from tests.stores import write_store
from tests.train.small_runs import last_weights, settings_for, train_in

CASES = {
    "gmn": ("grid", {}, {}),
    "mpnn": ("grid", {"name": "mpnn"}, {}),
    "gmn-input-tokens": ("grid", {"name": "gmn-input-tokens"}, {}),
    "edge features": ("grid", {"mpnn": "gatedgcn"}, {}),
    "batch": ("grid", {}, {"mode": "batch", "batch_nodes": 512}),
    "graphs": ("rings", {}, {"batch_size": 32}),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TokenStore]:
    """Large enough that torch shares its work out over threads."""
    folder = tmp_path_factory.mktemp("s")
    grid = load_dataset("minesweeper-grid", DatasetOptions(nodes=2500)).graph
    rings = load_dataset("skip-ring", DatasetOptions(graphs=64)).graph
    tokens = TokenSettings(2, 2, 1)
    return {name: write_store(folder / f"{name}.zarr", g, tokens) for name, g in (("grid", grid), ("rings", rings))}


@pytest.mark.parametrize("case", CASES)
def test_same_bits(stores: dict[str, TokenStore], tmp_path: Path, case: str) -> None:
    name, model, settings = CASES[case]
    sizes = {"width": 64, "node_layers": 2}
    config = settings_for(
        stores[name], epochs=2, model=ModelConfig.of(model.pop("name", "gmn"), **sizes, **model), **settings
    )
    threads, weights = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            train_in(config, tmp_path / str(count))
            weights.append(last_weights(config, tmp_path / str(count)))
    finally:
        torch.set_num_threads(threads)
    for other in weights[1:]:
        assert all(torch.equal(other[key], value) for key, value in weights[0].items())
