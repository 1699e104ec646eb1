"""`verify`: a fresh store of any graph passes; everything that is not as it was written, or cannot be, is found."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.errors import StoreCorruptError, StoreError
from gmn_pipeline.store.checking.verify_tree import check_tree
from tests.forgery import edit_document, poke, seal
from tests.stores import ring_graph, write_store
from tests.strategies import graphs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    encodings = {"random_walk": ({"k": 2, "mode": "exact"}, {"values": np.full((40, 2), 0.5, dtype=np.float32)})}
    path = tmp_path_factory.mktemp("verify") / "s.zarr"
    graph = ring_graph(edge_features=True)
    return write_store(path, graph, TokenSettings(2, 2, 2), block_size=20, encodings=encodings).path


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "s.zarr"))


@settings(max_examples=25, deadline=None)
@given(graph=graphs(), shape=st.sampled_from([(0, 0, 0), (1, 1, 1), (2, 3, 2), (3, 2, 1)]), walk=st.booleans())
def test_a_fresh_store_of_any_graph_passes(tmp_path_factory: pytest.TempPathFactory, graph, shape, walk) -> None:
    tokens = TokenSettings(*shape, walk="non-backtracking" if walk else "uniform")
    path = tmp_path_factory.mktemp("any") / "s.zarr"
    write_store(path, graph, tokens, block_size=5).verify()
    shutil.rmtree(path)


def test_every_bit_flip_of_the_upper_documents_is_found(whole: Path) -> None:
    missed = []
    for name in ("zarr.json", "encodings/zarr.json", "orderings/zarr.json", "tokens/zarr.json"):
        original = (whole / name).read_bytes()
        for bit in range(0, 8 * len(original), 13 if name == "zarr.json" else 1):
            changed = bytearray(original)
            changed[bit // 8] ^= 1 << bit % 8
            (whole / name).write_bytes(changed)
            try:
                check_tree(TokenStore.open(whole))
                missed.append((name, bit))
            except StoreError:
                pass
        (whole / name).write_bytes(original)
    assert missed == []
    TokenStore.open(whole).verify()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_bit_flips_over_all_files_are_found(whole: Path, data) -> None:
    file = data.draw(st.sampled_from(sorted(p for p in whole.rglob("*") if p.is_file())))
    original = file.read_bytes()
    changed = bytearray(original)
    changed[data.draw(st.integers(0, len(original) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    file.write_bytes(changed)
    try:
        with pytest.raises(StoreError):
            TokenStore.open(whole).verify()
    finally:
        file.write_bytes(original)


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "graph/x/more", "tokens/b00002/zarr.json", ".wip/left", "tokens/b00000/nodes/c/1", "graph/z/c/0"],
)
def test_files_that_do_not_belong_are_found(store: Path, name: str) -> None:
    (store / name).parent.mkdir(parents=True, exist_ok=True)
    (store / name).write_text("{}")
    with pytest.raises(StoreCorruptError, match="does not belong to the store"):
        TokenStore.open(store).verify()


@pytest.mark.parametrize("name", ["zarr.json", "graph/zarr.json", "tokens/b00001/zarr.json", "orderings/zarr.json"])
def test_attributes_that_do_not_belong_are_found(store: Path, name: str) -> None:
    edit_document(store / name, extra=1)
    with pytest.raises(StoreCorruptError, match="other fields"):
        TokenStore.open(store).verify()


@pytest.mark.parametrize(
    ("group", "array", "dtype", "place", "value", "message"),
    [
        ("graph", "y", "<i8", 3, 2, "fingerprint"),
        ("graph", "splits", "u1", 5, 0, "fingerprint"),
        ("graph", "x", "<f4", 7, 0.25, "fingerprint"),
        ("encodings/random_walk", "values", "<f4", 9, np.nan, "NaN or infinity"),
        ("orderings/degree", "ranks", "<i4", 4, 7, "ranks do not rise"),
        ("orderings/degree", "ranks", "<i4", slice(None), 1, "ranks do not rise"),
        ("tokens/b00000", "edges", "u1", slice(None), 0, "edges"),
        ("tokens/b00001", "edges", "u1", slice(0, 2), [1, 0], "edges"),
        ("tokens/b00001", "edge_slots", "<i4", 3, 0, "slot of another edge"),
        ("tokens/b00000", "walks", "u1", 2, 0, "walks|sizes"),
        ("tokens/b00000", "sizes", "u1", 0, 1, "sizes"),
        ("tokens/b00000", "edge_sizes", "u1", 0, 0, "edge_sizes"),
        ("tokens/b00000", "nodes", "<i4", 1, 0, "nodes|walks"),
    ],
)
def test_a_sealed_forgery_is_found_by_its_meaning(store, group, array, dtype, place, value, message) -> None:
    before = np.fromfile(next(p for p in (store / group / array / "c").rglob("0") if p.is_file()), dtype)
    poke(store / group / array, dtype, place, value)
    after = np.fromfile(next(p for p in (store / group / array / "c").rglob("0") if p.is_file()), dtype)
    assert not np.array_equal(before, after)
    seal(store, group)
    with pytest.raises(StoreCorruptError, match=message):
        TokenStore.open(store).verify()


def test_an_edge_left_out_is_found(store: Path) -> None:
    """The last edge of the last token that has one, taken out of all arrays, everything sealed."""
    block = store / "tokens" / "b00001"
    edge_ptr = np.fromfile(block / "edge_ptr/c/0", "<i4")
    edge_sizes = np.fromfile(block / "edge_sizes/c/0/0", "u1").reshape(-1, 2)
    token = int(np.flatnonzero(np.diff(edge_ptr))[-1])
    edge_ptr[token + 1 :] -= 1
    edge_sizes[token] = np.minimum(edge_sizes[token], edge_ptr[token + 1] - edge_ptr[token])
    edge_ptr.tofile(block / "edge_ptr/c/0")
    edge_sizes.tofile(block / "edge_sizes/c/0/0")
    count = int(edge_ptr[-1])
    for name, width in (("edges", 1), ("edge_slots", 4)):
        chunk = block / name / "c/0/0"
        os.truncate(chunk, count * 2 * width)
        document = json.loads((block / name / "zarr.json").read_text())
        document["shape"] = document["chunk_grid"]["configuration"]["chunk_shape"] = [count, 2]
        (block / name / "zarr.json").write_text(json.dumps(document))
    facts = json.loads((block / "zarr.json").read_text())["attributes"]["gmn"]
    edit_document(block / "zarr.json", gmn={**facts, "token_edges": count})
    from tests.forgery import edit_manifest

    edit_manifest(store, token_edges=TokenStore.open(store).manifest.token_edges - 1)
    seal(store, "tokens/b00001")
    with pytest.raises(StoreCorruptError, match="left out"):
        TokenStore.open(store).verify()
