"""`--check sampled`, the default, reads each part's bytes once in a run, however long the run is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.store.checking.byte_check import ByteCheck, Part
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.watching.display import Watcher
from gmn_train.train import train
from tests.stores import ring_graph, write_store
from tests.train.small_runs import settings_for


@pytest.mark.parametrize("epochs", [1, 4])
def test_every_part_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    store = write_store(tmp_path / "s.zarr", ring_graph(300, 300), TokenSettings(2, 4, 1), block_size=100).path
    checked: list[Part] = []
    run = ByteCheck._run

    def counted(self: ByteCheck, check_part: Callable[[Part], None]) -> None:
        def check(part: Part) -> None:
            checked.append(part)
            check_part(part)

        run(self, check)

    monkeypatch.setattr(ByteCheck, "_run", counted)
    config, folder = settings_for(store, epochs=epochs), RunFolder(tmp_path / "r")
    folder.create(config)
    train(config, TokenStore.open(store, check="sampled"), folder, Watcher())
    assert {0, 1, 2} <= set(checked)
    assert len(checked) == len(set(checked))
