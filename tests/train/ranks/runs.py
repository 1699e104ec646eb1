"""The runs that several processes share in tests: one for each mode."""

from dataclasses import replace
from pathlib import Path

from gmn_pipeline import TokenSettings
from gmn_train.settings.run_settings import TrainConfig
from tests.train.grains.ladder import ladder
from tests.train.model_stores import model_store
from tests.train.small_runs import SMALL, many_graphs, settings_for

MODEL = replace(SMALL, token_dropout=0.1, feature_mask=0.1, node_scan=True)


def write_stores(folder: Path) -> None:
    model_store(folder / "one.zarr", ladder(), TokenSettings(2, 2, 1), orderings=("degree",))
    model_store(folder / "many.zarr", many_graphs(), TokenSettings(1, 2, 1), orderings=("degree",))


def configs(folder: Path) -> dict[str, TrainConfig]:
    """Steps do not divide evenly; the last of `graphs` has fewer graphs than there are processes."""
    one, many = folder / "one.zarr", folder / "many.zarr"
    common = {"model": MODEL, "epochs": 2, "threads": 1}
    return {
        "full": settings_for(one, mode="full", grains=3, **common),
        "batch": settings_for(one, mode="batch", batch_nodes=13, grains=4, **common),
        "graphs": settings_for(many, batch_size=5, grains=8, **common),
    }
