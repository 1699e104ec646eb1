"""Large arrays are several chunks in one file: zarr-python reads them, we map them, and damage is found."""

import json
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.files import group_writer
from gmn_pipeline.store.files.array_files import open_array
from gmn_pipeline.store.files.storage import LocalFolder
from gmn_pipeline.store.format import chunks
from gmn_pipeline.store.format.array_spec import ArraySpec
from tests.stores import ring_graph, write_store


def bounds(patch: pytest.MonkeyPatch, large: int, chunk: int, at_once: int = 1 << 26) -> None:
    patch.setattr(chunks, "LARGE_BYTES", large)
    patch.setattr(chunks, "CHUNK_BYTES", chunk)
    patch.setattr(group_writer, "AT_ONCE", at_once)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 300), st.integers(0, 4)),
    st.sampled_from(["u1", "i4", "f4", "i8"]),
    st.integers(1, 400),
    st.integers(1, 500),
)
def test_zarr_and_we_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, int], kind: str, chunk: int, at_once: int
) -> None:
    shape = shape if shape[1] else shape[:1]
    array = np.random.default_rng(0).integers(0, 200, shape).astype(kind)
    root = tmp_path_factory.mktemp("chunks")
    spec = ArraySpec(array.dtype, array.shape)
    with pytest.MonkeyPatch.context() as patch:
        bounds(patch, 1, chunk, at_once)
        group_writer.write_arrays(root, "graph", {"x": array}, {}, "raw")
        mapped = open_array(LocalFolder(root), "graph/x", spec, "raw")
        cut = chunks.plan_chunks(spec)
    assert mapped.mapping is not None
    assert np.array_equal(mapped.values, array)
    stored = zarr.open_array(str(root / "graph/x"), mode="r")
    assert np.array_equal(stored[...], array)
    assert np.array_equal(stored[len(array) // 2 :], array[len(array) // 2 :])
    assert cut is not None
    assert stored.chunks == cut.inner


def test_zarr_writes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds(monkeypatch, 1, 64)
    array = np.arange(1, 103, dtype=np.int32)
    group_writer.write_arrays(tmp_path, "ours", {"x": array}, {}, "raw")
    theirs = zarr.create_array(
        str(tmp_path / "theirs"),
        shape=(102,),
        dtype="int32",
        chunks=(16,),
        shards=(112,),
        compressors=None,
        fill_value=0,
    )
    theirs[...] = array
    assert (tmp_path / "theirs/c/0").read_bytes() == (tmp_path / "ours/x/c/0").read_bytes()


def test_a_store_of_several_chunks_holds_what_one_of_single_chunks_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = write_store(tmp_path / "single.zarr", ring_graph(), TokenSettings(2, 2, 1))
    bounds(monkeypatch, 300, 128)
    several = write_store(tmp_path / "several.zarr", ring_graph(), TokenSettings(2, 2, 1))
    several.verify()
    TokenStore.open(tmp_path / "single.zarr").verify()  # written when no array was large
    assert several.manifest.fingerprint == single.manifest.fingerprint
    cut = json.loads((tmp_path / "several.zarr/graph/indices/zarr.json").read_text())
    assert cut["codecs"][0]["name"] == "sharding_indexed"
    for name, array in single.graph.arrays().items():
        assert np.array_equal(array, several.graph.arrays()[name]), name


@pytest.mark.parametrize("where", [0, -1, -5])
def test_damage_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: int) -> None:
    """In a value, in the index's checksum, in the index."""
    bounds(monkeypatch, 300, 128)
    store = write_store(tmp_path / "s.zarr", ring_graph(), TokenSettings(2, 2, 1))
    file = tmp_path / "s.zarr/graph/indices/c/0"
    content = bytearray(file.read_bytes())
    content[where] ^= 1
    file.write_bytes(content)
    with pytest.raises(StoreCorruptError, match="indices"):
        TokenStore.open(store.path).verify()


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds(monkeypatch, 300, 128)
    store = write_store(tmp_path / "s.zarr", ring_graph(), TokenSettings(2, 2, 1))
    file = tmp_path / "s.zarr/graph/indices/c/0"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(StoreCorruptError, match="cut off"):
        _ = TokenStore.open(store.path).graph
