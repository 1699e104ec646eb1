"""Run folders with wrong settings, summaries, metrics, weights and checkpoints."""

import json
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomli_w
import torch
from hypothesis import strategies as st

from tests.torture.attacks.forged_stores import PLACE, _leaves, _replace
from tests.torture.cases import BORDERS, VALUE, draw_cases
from tests.torture.children import explain
from tests.torture.world import World

FILES = [
    "config.toml",
    "data.json",
    "summary.json",
    "metrics.jsonl",
    "checkpoints/last.pt",
    "checkpoints/best.safetensors",
]
EDIT = st.one_of(
    st.tuples(st.just("value"), st.sampled_from(FILES), PLACE, VALUE | st.sampled_from(BORDERS)),
    st.tuples(st.just("value"), st.sampled_from(FILES[:3]), PLACE, VALUE | st.sampled_from(BORDERS)),
    st.tuples(st.just("cut"), st.sampled_from(FILES), st.integers(0, 99), st.none()),
    st.tuples(st.just("garbage"), st.sampled_from(FILES), st.just(0), st.binary(max_size=40)),
    st.tuples(st.just("flip"), st.sampled_from(FILES), PLACE, st.integers(1, 255)),
    st.tuples(
        st.just("kind"), st.sampled_from(FILES), st.just(0), st.sampled_from(["folder", "dangling", "loop", "gone"])
    ),
)
COMMANDS = ["evaluate", "predict", "resume", "resume longer", "report", "list runs"]
CASE = st.tuples(
    st.sampled_from(["raw", "many"]),
    st.lists(EDIT, min_size=1, max_size=2),
    st.booleans(),
    st.sampled_from(COMMANDS),
)


def make_cases(seed: int, count: int) -> list[Any]:
    return draw_cases(CASE, seed, count)


def try_case(case: Any, world: World, folder: Path) -> tuple[int, str | None]:
    kind, edits, unfinished, name = case
    peak = world.honest_peak(name, kind)
    here = world.copy(kind, folder / "here")
    if unfinished:
        (here / "r" / "summary.json").unlink()
    for what, file, place, value in edits:
        # An earlier edit may have left nothing to do, or the value has no place in such a file.
        with suppress(
            OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, IndexError, ArithmeticError
        ):
            _apply(here / "r" / file, what, place, value)
    return 1, explain(world.run(name, kind, here), peak)


def _apply(file: Path, what: str, place: int, value: Any) -> None:
    content = file.read_bytes()
    if what == "cut":
        file.write_bytes(content[: len(content) * place // 100])
    elif what == "garbage":
        file.write_bytes(value)
    elif what == "flip":
        at = place * 7919 % len(content)
        file.write_bytes(content[:at] + bytes([content[at] ^ value]) + content[at + 1 :])
    elif what == "kind":
        file.unlink()
        _replace(file, value)
    elif file.suffix == ".toml":
        file.write_text(tomli_w.dumps(_changed(tomllib.loads(content.decode()), place, value)))
    elif file.suffix == ".json":
        file.write_text(json.dumps(_changed(json.loads(content), place, value)))
    elif file.suffix == ".jsonl":
        rows = [json.loads(line) for line in content.splitlines()]
        rows[place % len(rows)] = _changed(rows[place % len(rows)], place, value)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif file.suffix == ".pt":
        torch.save(_changed(torch.load(file, weights_only=True), place, value), file)
    else:
        from safetensors.torch import load_file, save_file

        weights = load_file(file)
        name = sorted(weights)[place % len(weights)]
        if place % 3:
            del weights[name]
        else:
            weights[name] = torch.zeros(place % 5, 3)
        save_file(weights, file)


def _changed(document: Any, place: int, value: Any) -> Any:
    """The document with one value changed; its key is taken out for every fifth place."""
    paths = list(_leaves(document))
    *way, last = paths[place % len(paths)].split(".")
    inner = document
    for part in way:
        inner = inner[part]
    if place % 5 == 0:
        del inner[last]
    else:
        inner[last] = value
    return document
