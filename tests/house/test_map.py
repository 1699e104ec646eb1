"""The map in docs/contributing.md is true: the rooms, what they import, and the files that commands pass through."""

import ast
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from gmn_pipeline.console.cli import run_app
from gmn_prep.cli import app as prep
from gmn_train.cli import app as train

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
HOUSE = {
    "gmn": ROOT / "gmn",
    "gmn_pipeline": ROOT / "gmn_pipeline",
    "gmn_prep": ROOT / "stages/gmn_prep",
    "gmn_train": ROOT / "stages/gmn_train",
}
SMALL_STORE = "tokenize --dataset minesweeper-grid --nodes 36 --m 1 --M 2 --s 1 --lap-pe 2 --force --quiet --out"
SMALL_RUN = "run --epochs 1 --set model.width=8 --set model.states=2 --set model.node_layers=2 --force --quiet --store"


def rooms_of_the_map() -> dict[str, list[str]]:
    """Each room with the rooms it may import."""
    rows = re.findall(r"^\| `([\w/]+)/` \| [^|]+ \| ([^|]*)\|$", PAGE, re.M)
    return {room: re.findall(r"`(\w+)`", rule) or rule.split() for room, rule in rows}


def way(heading: str) -> list[str]:
    """The files that a section lists, in order."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\d+\. `([^`]+)`", section, re.M)


WAYS = {"From graph to bytes": way("From graph to bytes"), "From bytes to gradient": way("From bytes to gradient")}


def test_every_room_is_on_the_map() -> None:
    folders = {path.parent for package in HOUSE.values() for path in package.rglob("*.py")}
    assert set(rooms_of_the_map()) == {str(folder.relative_to(ROOT)) for folder in folders}


def imported_rooms(file: Path) -> Iterator[str]:
    """The rooms of its own package that a file imports, `train` for a file beside them; not those for types alone."""
    package = next(name for name, folder in HOUSE.items() if file.is_relative_to(folder))
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in for_types:
            top, *rest = str(node.module).split(".")
            if top == package:
                yield from rest[:1] or [name.name for name in node.names if not name.name.startswith("__")]


@pytest.mark.parametrize("room", rooms_of_the_map())
def test_a_room_imports_what_the_map_allows(room: str) -> None:
    package = next(folder for folder in HOUSE.values() if (ROOT / room).is_relative_to(folder))
    own = (ROOT / room).relative_to(package).parts[:1]
    if not own:
        return  # the files of a stage's own folder may import every room; those of the contract: see below
    allowed = {*own, *rooms_of_the_map()[f"{package.relative_to(ROOT)}/{own[0]}"]}
    for file in (ROOT / room).glob("*.py"):
        for name in imported_rooms(file):
            beside = package.name == "gmn_pipeline" and (package / f"{name}.py").is_file()
            assert beside or name in allowed, f"{file.relative_to(ROOT)} imports {name}"


def test_the_files_of_the_contract_import_no_room() -> None:
    for file in HOUSE["gmn_pipeline"].glob("*.py"):
        assert [name for name in imported_rooms(file) if (file.parent / name).is_dir()] == [], file.name


def test_the_ways_are_short_enough_to_read() -> None:
    assert 10 <= len(WAYS["From graph to bytes"]) <= 24
    assert 10 <= len(WAYS["From bytes to gradient"]) <= 24
    for files in WAYS.values():
        assert len(set(files)) == len(files)
        assert [file for file in files if not (ROOT / file).is_file()] == []


def call(app: Any, line: str, *paths: Path) -> None:
    with pytest.raises(SystemExit) as end:
        run_app(app, [*line.split(), *map(str, paths)])
    assert not end.value.code


def files_at_work(app: Any, line: str, *paths: Path) -> list[str]:
    """The files with a function that a command calls. An earlier run has imported and compiled everything."""
    call(app, line, *paths)
    names: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and not code.co_name.startswith("<"):
            names.setdefault(code.co_filename)

    threading.setprofile(note)  # for threads that the command starts
    sys.setprofile(note)
    try:
        call(app, line, *paths)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [str(Path(name).relative_to(ROOT)) for name in names if Path(name).is_relative_to(ROOT)]


def test_the_commands_pass_through_the_files_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "grid.zarr"
    made = files_at_work(prep, SMALL_STORE, store)
    trained = files_at_work(train, SMALL_RUN, store)
    for heading, at_work in (("From graph to bytes", made), ("From bytes to gradient", trained)):
        assert [file for file in WAYS[heading] if file not in at_work] == [], heading
