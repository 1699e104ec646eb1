"""Stores changed by a hand that knows the format: arrays, documents and files, with checksums that fit again."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.forgery import edit_manifest, seal
from tests.torture.cases import BORDERS, TEXT, VALUE, draw_cases
from tests.torture.children import explain
from tests.torture.world import ON_STORE, World

PLACE = st.integers(0, 10_000)
EDIT = st.one_of(
    st.tuples(st.just("manifest"), PLACE, VALUE),
    st.tuples(st.just("manifest"), PLACE, st.sampled_from(BORDERS)),
    st.tuples(st.just("document"), PLACE, PLACE, VALUE),
    st.tuples(st.just("array"), PLACE, st.lists(st.tuples(PLACE, st.sampled_from(BORDERS)), min_size=1, max_size=4)),
    st.tuples(st.just("array"), PLACE, st.lists(st.tuples(PLACE, st.sampled_from(BORDERS)), min_size=1, max_size=4)),
    st.tuples(st.just("fill"), PLACE, st.sampled_from(BORDERS)),
    st.tuples(st.just("cut"), PLACE, st.integers(0, 100)),
    st.tuples(st.just("garbage"), PLACE, st.binary(max_size=40)),
    st.tuples(
        st.just("kind"), PLACE, st.sampled_from(["pipe", "folder", "zeros", "sparse", "dangling", "loop", "gone"])
    ),
    st.tuples(st.just("swap"), PLACE, PLACE),
    st.tuples(st.just("extra"), PLACE, TEXT),
)
CASE = st.tuples(
    st.sampled_from(["raw", "zstd", "many"]), st.lists(EDIT, min_size=1, max_size=3), st.sampled_from(sorted(ON_STORE))
)


def make_cases(seed: int, count: int) -> list[Any]:
    return draw_cases(CASE, seed, count)


def try_case(case: Any, world: World, folder: Path) -> tuple[int, str | None]:
    kind, edits, name = case
    peak = world.honest_peak(name, kind)
    here = world.copy(kind, folder / "here")
    for edit in edits:
        try:
            _apply(here / "s.zarr", *edit)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError):
            pass  # an earlier edit has left nothing to do
        except Exception as error:  # sealing reads as the store does, and refuses as it does
            if type(error).__module__ != "gmn_pipeline.errors":
                raise
    return 1, explain(world.run(name, kind, here), peak)


def _apply(store: Path, what: str, place: int, *more: Any) -> None:
    files = sorted(p for p in store.rglob("*") if p.is_file() and not p.is_symlink())
    chunks = [p for p in files if p.name != "zarr.json"]
    documents = [p for p in files if p.name == "zarr.json"]
    file = files[place % len(files)]
    if what == "manifest":
        body = json.loads((store / "zarr.json").read_text())["attributes"]["gmn"]
        paths = list(_leaves(body))
        edit_manifest(store, **{paths[place % len(paths)]: more[0]})
    elif what == "document":
        _edit_document(documents[place % len(documents)], *more)
        _reseal(store, documents[place % len(documents)])
    elif what in ("array", "fill"):
        chunk = chunks[place % len(chunks)]
        _poke(store, chunk, more[0] if what == "array" else [(slice(None), more[0])])
        _reseal(store, chunk)
    elif what == "cut":
        os.truncate(file, int(file.stat().st_size * more[0] / 100))
    elif what == "garbage":
        file.write_bytes(more[0])
    elif what == "kind":
        file.unlink()
        _replace(file, more[0])
    elif what == "swap":
        other = files[more[0] % len(files)]
        first, second = file.read_bytes(), other.read_bytes()
        file.write_bytes(second)
        other.write_bytes(first)
    elif what == "extra":
        (file.parent / more[0]).write_text("x")


def _leaves(body: Any, path: str = "") -> Any:
    """Dotted paths of all values of a nested document, whole dictionaries too."""
    for key, value in body.items():
        yield f"{path}{key}"
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{key}.")


def _edit_document(file: Path, place: int, value: Any) -> None:
    document = json.loads(file.read_text())
    paths = list(_leaves(document))
    *way, last = paths[place % len(paths)].split(".")
    inner = document
    for part in way:
        inner = inner[part]
    inner[last] = value
    file.write_text(json.dumps(document))


def _poke(store: Path, chunk: Path, pokes: list[Any]) -> None:
    """Overwrite numbers of an array, raw or compressed."""
    from numcodecs import zstd

    array = chunk
    while not (array / "zarr.json").exists():
        array = array.parent
    document = json.loads((array / "zarr.json").read_text())
    packed = len(document["codecs"]) > 1
    content = zstd.decompress(chunk.read_bytes()) if packed else chunk.read_bytes()
    values = np.frombuffer(content, np.dtype(document["data_type"])).copy()
    for place, value in pokes:
        where = place if isinstance(place, slice) else place % len(values)
        if values.dtype.kind == "f":
            values[where] = [np.nan, np.inf, -np.inf, 1e38, 0.0][value % 5]
        else:
            bounds = np.iinfo(values.dtype)
            values[where] = min(max(value, bounds.min), bounds.max)
    chunk.write_bytes(zstd.compress(values.tobytes(), 3) if packed else values.tobytes())
    assert store in array.parents


def _reseal(store: Path, file: Path) -> None:
    parts = file.relative_to(store).parts
    if len(parts) > 1:
        seal(store, parts[0] if parts[0] == "graph" else "/".join(parts[:2]))


def _replace(file: Path, kind: str) -> None:
    """Something else under a file's name."""
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "zeros":
        file.symlink_to("/dev/zero")
    elif kind == "sparse":
        file.touch()
        os.truncate(file, 1 << 40)
    elif kind == "dangling":
        file.symlink_to("nowhere")
    elif kind == "loop":
        file.symlink_to(file.name)
