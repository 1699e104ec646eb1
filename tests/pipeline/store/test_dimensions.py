"""Names of dimensions: every array has them, they agree within a group, xarray opens it, and readers need none."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray
import zarr

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.store.files import group_writer
from gmn_pipeline.store.format.dimensions import DIMENSIONS, dimension_names
from tests.stores import ring_graph, write_store


def groups(path: Path) -> list[Path]:
    return sorted({file.parents[1] for file in path.rglob("zarr.json") if '"array"' in file.read_text()})


def test_every_array_has_names_that_agree_within_its_group(tmp_path: Path) -> None:
    graph = ring_graph(edge_features=True).with_ids(range(40), None)
    store = write_store(tmp_path / "ring.zarr", graph, TokenSettings(2, 2, 1))
    for folder in groups(store.path):
        sizes: dict[str, int] = {}
        group = str(folder.relative_to(store.path))
        for name, array in zarr.open_group(str(folder), mode="r").arrays():
            names = array.metadata.dimension_names
            assert names is not None
            assert len(names) == array.ndim == len(set(names)), f"{group}/{name}"
            assert not any(n.endswith("_0") for n in names), f"{group}/{name} is not in the table"
            for dimension, size in zip(names, array.shape, strict=True):
                assert sizes.setdefault(dimension, size) == size, f"{group}: {dimension}"
            assert name not in names
    store.verify()


def test_an_array_of_another_package_gets_names_too() -> None:
    assert dimension_names("encodings/mine", "powers", 2) == ("powers_0", "powers_1")
    assert dimension_names("graph", "y", 1) == ("item",)
    assert dimension_names("tokens/b00001", "edges", 2) == DIMENSIONS["tokens/*/edges"]


def test_a_store_without_names_is_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = write_store(tmp_path / "named.zarr", ring_graph(), TokenSettings(2, 2, 1))
    monkeypatch.setattr(group_writer, "dimension_names", lambda *_: None)
    write_store(tmp_path / "bare.zarr", ring_graph(), TokenSettings(2, 2, 1))
    document = json.loads((tmp_path / "bare.zarr" / "graph" / "indptr" / "zarr.json").read_text())
    assert not document.get("dimension_names")
    bare = TokenStore.open(tmp_path / "bare.zarr")
    bare.verify()
    ids = np.arange(5)
    assert np.array_equal(bare.view().gather(ids).nodes, named.view().gather(ids).nodes)
    assert bare.fingerprint == named.fingerprint


def test_a_store_without_names_is_repaired_as_it_was(tmp_path: Path) -> None:
    import shutil

    from gmn_prep.phases import Phases
    from gmn_prep.repair import repair_store
    from gmn_prep.tokenize import tokenize
    from gmn_prep.tokenize_settings import TokenizeConfig

    path = tmp_path / "grid.zarr"
    config = TokenizeConfig("minesweeper-grid", nodes=100, m=1, M=2, s=1, block_size=50, out=path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_writer, "dimension_names", lambda *_: None)
        tokenize(config, Phases())
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    shutil.rmtree(path / "tokens" / "b00001")
    assert repair_store(path, Phases(), threads=1)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


def test_xarray_opens_every_group(tmp_path: Path) -> None:
    store = write_store(tmp_path / "ring.zarr", ring_graph(edge_features=True), TokenSettings(2, 2, 1))
    for folder in groups(store.path):
        opened = xarray.open_zarr(store.path, group=str(folder.relative_to(store.path)), consolidated=False)
        assert len(opened.data_vars) > 0
