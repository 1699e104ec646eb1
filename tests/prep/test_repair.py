"""Repair: every missing or damaged part is written again, bit for bit, and nothing else is touched."""

import json
import os
import shutil
from pathlib import Path

import pytest

from gmn_pipeline import TokenStore
from gmn_pipeline.errors import StoreCorruptError, StoreError
from gmn_prep.phases import Phases
from gmn_prep.repair import repair_store
from gmn_prep.tokenize import tokenize
from gmn_prep.tokenize_settings import TokenizeConfig
from tests.forgery import chunk_of

OPTIONS = {
    "dataset": "minesweeper-grid",
    "nodes": 100,
    "m": 2,
    "M": 2,
    "s": 1,
    "lap_pe": 2,
    "rwse": 3,
    "block_size": 25,
}


def config(folder: Path, **more: object) -> TokenizeConfig:
    return TokenizeConfig(out=folder / "s.zarr", **{**OPTIONS, **more})


def tree(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenize(config(tmp_path_factory.mktemp("repair")), Phases()).path


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "s.zarr"))


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 16
    file.write_bytes(content)


DAMAGE = {
    "tokens/b00001": lambda s: shutil.rmtree(s / "tokens/b00001"),
    "tokens/b00000": lambda s: flip(chunk_of(s / "tokens/b00000/walks")),
    "tokens/b00002": lambda s: (s / "tokens/b00002/zarr.json").write_text("{}"),
    "tokens/b00003": lambda s: (s / "tokens/b00003/extra").mkdir(),
    "tokens/index": lambda s: flip(chunk_of(s / "tokens/index/block_ptr")),
    "encodings/laplacian": lambda s: shutil.rmtree(s / "encodings/laplacian"),
    "encodings/random_walk": lambda s: flip(chunk_of(s / "encodings/random_walk/values")),
    "orderings/degree": lambda s: os.truncate(chunk_of(s / "orderings/degree/ranks"), 8),
    "orderings/zarr.json": lambda s: flip(s / "orderings/zarr.json"),
}


@pytest.mark.parametrize("part", DAMAGE)
def test_each_part(store: Path, whole: Path, part: str) -> None:
    kept = {
        p: p.stat().st_ino for p in store.rglob("*") if p.is_file() and not str(p.relative_to(store)).startswith(part)
    }
    DAMAGE[part](store)
    with pytest.raises(StoreError):
        TokenStore.open(store).verify()
    assert repair_store(store, Phases()) == [part]
    assert tree(store) == tree(whole)
    assert {p: p.stat().st_ino for p in kept} == kept
    assert repair_store(store, Phases()) == []


def test_all_parts_at_once_and_a_block_of_another_store(store: Path, whole: Path, tmp_path: Path) -> None:
    for damage in DAMAGE.values():
        damage(store)
    assert len(repair_store(store, Phases(), threads=2)) == len(DAMAGE)
    other = tokenize(config(tmp_path / "other", seed=1), Phases()).path
    shutil.rmtree(store / "tokens/b00002")
    shutil.copytree(other / "tokens/b00002", store / "tokens/b00002")
    assert repair_store(store, Phases()) == ["tokens/b00002"]
    assert tree(store) == tree(whole)
    assert not list(store.parent.glob("*.lock"))


def test_a_damaged_graph_needs_its_dataset(store: Path, whole: Path) -> None:
    flip(chunk_of(store / "graph/y"))
    with pytest.raises(StoreError, match="run the store's gmn-prep tokenize command"):
        repair_store(store, Phases())
    shutil.rmtree(store / "graph/x")
    assert tokenize(config(store.parent), Phases()).repaired == ("graph",)
    assert tree(store) == tree(whole)


def test_tokenize_tells_and_repairs(store: Path, whole: Path) -> None:
    shutil.rmtree(store / "tokens/b00001")
    os.truncate(chunk_of(store / "tokens/b00002/nodes"), 4)
    outcome = tokenize(config(store.parent), Phases())
    assert (outcome.made, outcome.repaired) == (False, ("tokens/b00001", "tokens/b00002"))
    assert tree(store) == tree(whole)
    flip(chunk_of(store / "tokens/b00001/nodes"))  # same size: only force or repair look at bytes
    assert tokenize(config(store.parent, force=True), Phases()).made
    assert tree(store) == tree(whole)
    assert sorted(p.name for p in store.parent.iterdir()) == ["s.zarr"]


def test_names_with_brackets_are_printed_as_they_are(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gmn_prep.inspect import inspect_store, verify_store
    from gmn_prep.inspect import repair_store as command

    odd = store.with_name("[") / "x].zarr"
    odd.parent.mkdir()
    store.rename(odd)
    inspect_store(odd, as_json=False)
    verify_store(odd, quiet=False, as_json=False)
    command(odd, quiet=False, as_json=False)
    assert "".join(capsys.readouterr().out.split()).count("[/x].zarr") == 3


def test_a_damaged_manifest_is_told_and_replaced_by_force(store: Path, whole: Path) -> None:
    document = json.loads((store / "zarr.json").read_text())
    document["attributes"]["gmn"]["blocks"] = 3
    (store / "zarr.json").write_text(json.dumps(document))
    for attempt in (lambda: repair_store(store, Phases()), lambda: tokenize(config(store.parent), Phases())):
        with pytest.raises(StoreCorruptError, match="checksum"):
            attempt()
    assert tokenize(config(store.parent, force=True), Phases()).made
    assert tree(store) == tree(whole)


def test_a_pipe_in_place_of_a_document_does_not_hang(whole: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.zarr"
    shutil.copytree(whole, store)
    document = store / "tokens" / "index" / "block_ptr" / "zarr.json"
    document.unlink()
    os.mkfifo(document)
    shutil.rmtree(store / "tokens" / "b00001")
    repair_store(store, Phases())
    assert tree(store) == tree(whole)
