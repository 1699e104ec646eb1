"""The rules between packages, read from the import statements themselves."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {
    "gmn": ROOT / "gmn",
    "gmn_pipeline": ROOT / "gmn_pipeline",
    "gmn_prep": ROOT / "stages" / "gmn_prep",
    "gmn_train": ROOT / "stages" / "gmn_train",
}
TORCH = {"torch", "torch_geometric", "ogb"}


def imports(file: Path) -> Iterator[tuple[str, bool]]:
    """(top-level package, whether it is imported inside a function) for every import of a file."""
    tree = ast.parse(file.read_text())
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide where things come from"
            names = [node.module or ""]
        for name in names:
            yield name.split(".")[0], id(node) in inside


@pytest.mark.parametrize("package", SOURCES)
def test_packages_import_only_what_they_may(package: str) -> None:
    forbidden = {
        "gmn": set(),
        "gmn_pipeline": {"gmn", "gmn_prep", "gmn_train"},
        "gmn_prep": {"gmn", "gmn_train"},
        "gmn_train": {"gmn", "gmn_prep"},
    }[package]
    for file in SOURCES[package].rglob("*.py"):
        for name, _ in imports(file):
            assert name not in forbidden, f"{file.relative_to(ROOT)} imports {name}"


def test_every_class_has_a_name_of_its_own() -> None:
    files = [file for folder in SOURCES.values() for file in folder.rglob("*.py")]
    places = [
        (node.name, str(file.relative_to(ROOT)))
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    counts = Counter(name for name, _ in places)
    assert not [place for place in places if counts[place[0]] > 1]


def test_no_file_joins_the_two_stages_by_anything_but_a_store() -> None:
    """`gmn` serves both stages from Python; each of its files knows one of them at most."""
    for file in SOURCES["gmn"].rglob("*.py"):
        stages = {name for name, _ in imports(file)} & {"gmn_prep", "gmn_train"}
        assert len(stages) <= 1, f"{file.relative_to(ROOT)} imports {stages}"


def test_torch_stays_where_it_belongs() -> None:
    """The contract imports it inside functions of two files; stage one inside its dataset adapters."""
    for package, allowed in (("gmn_pipeline", {"pyg.py", "tensors.py"}), ("gmn_prep", None)):
        for file in SOURCES[package].rglob("*.py"):
            for name, inside in imports(file):
                if name in TORCH:
                    where = f"{file.relative_to(ROOT)} imports {name}"
                    assert inside, f"{where} outside a function"
                    assert file.name in allowed if allowed else "datasets" in file.parts, where


@pytest.mark.parametrize("command", ["gmn-prep", "gmn-train"])
def test_help_loads_nothing_heavy(command: str) -> None:
    module = command.replace("-", "_")
    code = f"import sys, {module}.cli; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numba", "zarr", "scipy", "pandas", "numpy", "pydantic", "torch_geometric"} & set(loaded)


def test_files_stay_readable() -> None:
    """A reader should know where to look: one idea per file."""
    for folder in SOURCES.values():
        for file in folder.rglob("*.py"):
            assert len(file.read_text().splitlines()) <= 350, f"{file.relative_to(ROOT)} has grown too long"
