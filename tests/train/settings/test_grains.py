"""How many grains a run has: a plain run none, several processes a number that does not depend on how many they are."""

from pathlib import Path

import pytest

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.config import identity
from gmn_pipeline.errors import ConfigError
from gmn_train.settings.request import read_request
from tests.train.model_stores import model_store
from tests.train.small_runs import many_graphs, settings_for


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_store(tmp_path_factory.mktemp("s") / "s.zarr", many_graphs(), TokenSettings(1, 1, 1)).path


def test_processes_are_no_part_of_a_run_and_grains_are(store: Path) -> None:
    plain, two, eight = (settings_for(store, procs=procs) for procs in (1, 2, 8))
    assert (plain.grains, two.grains, eight.grains) == (None, 8, 8)
    assert settings_for(store, procs=9).grains == 16
    assert identity(two) == identity(eight) != identity(plain)
    assert identity(settings_for(store, grains=1)) == identity(plain)


def test_one_process_that_was_asked_for_is_cut_as_several_are(store: Path, tmp_path: Path) -> None:
    asked, plain = (read_request({"store": store, "procs": procs}).config for procs in (1, None))
    assert (asked.grains, plain.grains) == (8, None)
    (tmp_path / "config.toml").write_text(f'store = "{store}"\nprocs = 1\n')  # as every plain run has it
    assert read_request({}, tmp_path / "config.toml").config.grains is None


def test_more_processes_than_grains_are_refused(store: Path) -> None:
    with pytest.raises(ConfigError, match="every process needs a grain"):
        settings_for(store, procs=3, grains=2)
