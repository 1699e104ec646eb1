"""Raw files of public datasets that are damaged, strange or hostile: pickles above all, which may run code."""

import gzip
import io
import pickle
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from tests.prep.datasets.public.drawn_graphs import (
    COCO_LABELS,
    MALNET,
    contact,
    pattern,
    peptide,
    pixels,
    segments,
)
from tests.prep.datasets.public.many_graph_samples import draw_items, write_gnn_benchmark, write_lrgb, write_malnet
from tests.prep.datasets.public.raw_samples import (
    PLANETOID_KNOWN,
    write_arxiv,
    write_heterophilous,
    write_planetoid,
    write_products,
)
from tests.torture.attacks.forged_stores import _replace
from tests.torture.cases import BORDERS, draw_cases
from tests.torture.children import explain, left_behind, run
from tests.torture.world import World

HETEROPHILOUS = {"minesweeper": 2, "roman-empire": 18, "tolokers": 2, "actor": 5, "chameleon-filtered": 5}
TEST = [PLANETOID_KNOWN, PLANETOID_KNOWN + 1]
WRITERS: dict[str, Callable[[Path], Any]] = {
    **{
        spelling.lower(): lambda root, s=spelling, c=classes: write_planetoid(root, s, c, TEST)
        for spelling, classes in (("Cora", 7), ("CiteSeer", 6), ("PubMed", 3))
    },
    **{n: lambda root, n=n, c=classes: write_heterophilous(root, n, c) for n, classes in HETEROPHILOUS.items()},
    "ogbn-arxiv": write_arxiv,
    "ogbn-products": write_products,
    "peptides-func": lambda root: write_lrgb(root, "peptides-func", draw_items(lambda r, n: peptide(10, r, n))),
    "peptides-struct": lambda root: write_lrgb(root, "peptides-struct", draw_items(lambda r, n: peptide(11, r, n))),
    "pcqm-contact": lambda root: write_lrgb(root, "pcqm-contact", draw_items(contact)),
    "pascalvoc-sp": lambda root: write_lrgb(root, "pascalvoc-sp", draw_items(lambda r, n: segments([0, 20], r, n))),
    "coco-sp": lambda root: write_lrgb(root, "coco-sp", draw_items(lambda r, n: segments([*COCO_LABELS], r, n))),
    "mnist": lambda root: write_gnn_benchmark(root, "MNIST", draw_items(lambda r, n: pixels(1, r, n))),
    "cifar10": lambda root: write_gnn_benchmark(root, "CIFAR10", draw_items(lambda r, n: pixels(3, r, n))),
    "pattern": lambda root: write_gnn_benchmark(root, "PATTERN", draw_items(pattern)),
    "malnet-tiny": lambda root: write_malnet(root, MALNET),
}
PICKLES = ["cora", "citeseer", "pubmed", "peptides-func", "peptides-struct", "pcqm-contact", "pascalvoc-sp", "coco-sp",
           "mnist", "cifar10", "pattern"]  # fmt: skip
PLACE = st.integers(0, 100_000)
EDIT = st.one_of(
    st.tuples(st.just("flip"), PLACE, st.integers(1, 255)),
    st.tuples(st.just("cut"), PLACE, st.integers(0, 99)),
    st.tuples(st.just("garbage"), PLACE, st.binary(max_size=40)),
    st.tuples(st.just("swap"), PLACE, PLACE),
    st.tuples(st.just("kind"), PLACE, st.sampled_from(["pipe", "folder", "zeros", "sparse", "dangling", "loop"])),
    st.tuples(st.just("value"), PLACE, st.sampled_from([*BORDERS, None, "x", [], 0.5, float("nan")])),
    st.tuples(st.just("value"), PLACE, st.sampled_from([*BORDERS, None, "x", [], 0.5, float("nan")])),
    st.tuples(st.just("bomb"), PLACE, st.integers(20, 28)),
)
HOSTILE = st.tuples(st.just("hostile"), PLACE, st.integers(0, 11))
CASE = st.one_of(
    st.tuples(st.sampled_from(PICKLES), st.lists(HOSTILE, min_size=1, max_size=1)),
    st.tuples(st.sampled_from(sorted(WRITERS)), st.lists(EDIT, min_size=1, max_size=2)),
    st.tuples(st.sampled_from(sorted(WRITERS)), st.lists(EDIT, min_size=1, max_size=2)),
)


class Touch:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, ("open('proof', 'w').close()",)


class InStorage:
    """The same inside bytes that torch saved."""

    def __reduce__(self) -> Any:
        content = io.BytesIO()
        torch.save(Touch(), content)
        return torch.storage._load_from_bytes, (content.getvalue(),)


def make_cases(seed: int, count: int) -> list[Any]:
    return draw_cases(CASE, seed, count)


def try_case(case: Any, world: World, folder: Path) -> tuple[int, str | None]:
    name, edits = case
    command = f"tokenize --dataset {name} --data-root raw --recipe none --m 1 --M 1 --s 1 --threads 1 --out new.zarr"
    peak = world.remember(f"peak of {name}", lambda: _honest_peak(name, command, folder / "honest"))
    here = folder / "here"
    here.mkdir()
    WRITERS[name](here / "raw")
    for edit in edits:
        with suppress(Exception):  # an earlier edit has left nothing to do, or the value has no place there
            _apply(here / "raw", *edit)
    ended = run("gmn-prep", command.split(), here, _cut_off)
    fault = explain(ended, peak) or left_behind(here)
    if (here / "proof").exists():
        fault = "ran code of the file"
    elif edits[0][0] == "hostile" and ended.code == 0:
        fault = "read a hostile pickle"
    return 1, fault


def _honest_peak(name: str, command: str, folder: Path) -> int:
    folder.mkdir()
    WRITERS[name](folder / "raw")
    ended = run("gmn-prep", command.split(), folder, _cut_off)
    assert ended.code == 0, ended
    return ended.peak


def _cut_off() -> None:
    """No network: what is missing is not fetched."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("no network here")

    socket.getaddrinfo = refuse


def _apply(root: Path, what: str, place: int, value: Any) -> None:
    files = sorted(p for p in root.rglob("*") if p.is_file() and p.stat().st_size < 1 << 30 and not p.is_symlink())
    file = files[place % len(files)]
    content = file.read_bytes()
    if what == "hostile":
        pickles = [p for p in files if p.suffix not in (".x", ".index")]  # ind.cora.x is not needed, and not read
        _write_hostile(pickles[place % len(pickles)], value)
    elif what == "flip":
        at = place * 7919 % len(content)
        file.write_bytes(content[:at] + bytes([content[at] ^ value]) + content[at + 1 :])
    elif what == "cut":
        file.write_bytes(content[: len(content) * value // 100])
    elif what == "garbage":
        file.write_bytes(value)
    elif what == "swap":
        other = files[value % len(files)]
        file.write_bytes(other.read_bytes())
        other.write_bytes(content)
    elif what == "kind":
        file.unlink()
        _replace(file, value)
    elif what == "bomb" and file.suffix == ".gz":
        file.write_bytes(gzip.compress(bytes(1 << value)))
    elif what == "value":
        _poke(file, place, value)


def _write_hostile(file: Path, how: int) -> None:
    inner = [Touch(), InStorage(), [(torch.ones(2), Touch())], {"x": Touch()}][how % 4]
    if file.suffix != ".pt" or how >= 8:
        file.write_bytes(pickle.dumps(inner, how % 5))
    else:
        torch.save(inner, file, _use_new_zipfile_serialization=how < 4)


def _poke(file: Path, place: int, value: Any) -> None:
    """Change one value of what a file holds, and write it as it was written."""
    if file.suffix == ".npz":
        with np.load(file) as opened:
            arrays = {name: opened[name] for name in opened.files}
        name = sorted(arrays)[place % len(arrays)]
        arrays[name] = _odd(arrays[name], place, value)
        np.savez(file, **arrays)
    elif file.suffix == ".gz":
        words = gzip.decompress(file.read_bytes()).decode().replace("\n", " \n ").replace(",", " , ").split(" ")
        words[place % len(words)] = str(value)
        file.write_bytes(gzip.compress("".join(words).encode()))
    elif file.suffix == ".pt":
        content = torch.load(file, weights_only=True)
        torch.save(_replace_leaf(content, place, value), file)
    elif file.suffix in (".txt", ".edgelist", ".index"):
        words = file.read_text().split(" ")
        words[place % len(words)] = f"{value}\n"
        file.write_text(" ".join(words))
    else:
        file.write_bytes(pickle.dumps(_replace_leaf(pickle.loads(file.read_bytes()), place, value), 2))


def _odd(array: Any, place: int, value: Any) -> Any:
    """An array of another shape, type or value."""
    array = np.array(array)
    if place % 4 == 0:
        return array[: len(array) // 2]
    if place % 4 == 1:
        return array.reshape(-1)
    if place % 4 == 2 and value is not None:
        return np.array([value] * 3)
    array.reshape(-1)[place % max(array.size, 1)] = value
    return array


def _replace_leaf(content: Any, place: int, value: Any) -> Any:
    spots = list(_spots(content))
    if not spots:
        return value
    holder, key = spots[place % len(spots)]
    old = holder[key]
    if isinstance(old, torch.Tensor):
        new = torch.from_numpy(np.asarray(_odd(old.numpy(), place, value)))
    elif isinstance(old, np.ndarray):
        new = _odd(old, place, value)
    else:
        new = value
    if isinstance(holder, tuple):
        raise TypeError
    holder[key] = new
    return content


def _spots(content: Any) -> Iterator[tuple[Any, Any]]:
    """(holder, key) of everything inside lists and dicts; tuples are opened up to lists where they stand."""
    keys = list(content) if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        if isinstance(content[key], tuple):
            content[key] = list(content[key])
        yield content, key
        yield from _spots(content[key])
