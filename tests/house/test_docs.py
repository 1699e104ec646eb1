"""The documentation names things that exist: files, functions, tests, commands and links."""

import importlib.util
import re
import runpy
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from gmn_prep.cli import app as prep
from gmn_train.cli import app as train
from gmn_train.tables.leave_one_out import read_leave_one_out
from gmn_train.tables.making import INTRO, KEPT
from gmn_train.tables.spec import RowSpec, TableSpec, read_spec
from gmn_train.tables.writing import heading, row_command
from tests.benchmarks.__main__ import write_summary

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROGRAMS: dict[str, Any] = {"gmn-prep": get_command(prep), "gmn-train": get_command(train)}
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_paper_map_names_what_is_there() -> None:
    """Every `path` and `path::name` in code font: the file exists and defines the name."""
    named = re.findall(r"`((?:docs|gmn_pipeline|stages|tests)/[^`\s]+)`", (DOCS / "paper-map.md").read_text())
    assert len(named) > 80
    for reference in named:
        path, _, name = reference.partition("::")
        assert (ROOT / path).is_file(), reference
        if name:
            defined = rf"^\s*(?:def|class)\s+{name}\b|^{name}\b\s*[:=]"
            assert re.search(defined, (ROOT / path).read_text(), re.M), reference


def test_the_paper_map_is_complete() -> None:
    text = (DOCS / "paper-map.md").read_text()
    wanted = [f"Eq. ({i})" for i in range(1, 10)] + [f"Table {i}" for i in range(1, 8)]
    wanted += [f"Figure {i}" for i in range(1, 7)] + [f"Theorem 4.{i}" for i in range(1, 5)]
    assert [item for item in wanted if item not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            assert (page.parent / path).exists(), target
            if anchor and path:
                assert anchor in anchors(page.parent / path), target


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def commands_in(page: Path) -> Iterator[list[str]]:
    """The commands of a page's code blocks, and those in code font, by words."""
    text = page.read_text()
    for block in re.findall(r"```[a-z]*\n(.*?)```", text, re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r"(\$ )?(\.venv/bin/)?gmn-(prep|train) ", line.strip()):
                yield shlex.split(line.strip().removeprefix("$ ").removeprefix(".venv/bin/"), comments=True)
    for line in re.findall(r"`(gmn-(?:prep|train) [^`|]+)`", text):
        yield shlex.split(" ".join(line.split()))


def options_of(command: Any) -> set[str]:
    return {flag for p in command.params for flag in (*p.opts, *p.secondary_opts) if flag.startswith("-")}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_their_options_exist(page: Path) -> None:
    for program, name, *rest in commands_in(page):
        if not name.islower():  # `gmn-prep COMMAND --help`
            continue
        commands = PROGRAMS[program].commands
        assert name in commands, f"{program} {name}"
        known = options_of(commands[name]) | {"--help", "--debug"}
        used = {word.partition("=")[0] for word in rest if re.match(r"--[A-Za-z]", word)}
        assert used <= known, f"{program} {name}: {sorted(used - known)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules_that_a_page_runs_exist(page: Path) -> None:
    for name in re.findall(r"python -m (tests\.[\w.]+)", page.read_text()):
        assert importlib.util.find_spec(name.rstrip(".")) is not None, name


def test_the_page_of_commands_has_them_all() -> None:
    text = runpy.run_path(str(DOCS / "hooks.py"))["describe_programs"]()
    assert "<!-- commands -->" in (DOCS / "cli.md").read_text()
    for program, group in PROGRAMS.items():
        for name, command in group.commands.items():
            section = text.split(f"### {program} {name}\n")[1].split("\n## ")[0].split("\n### ")[0]
            assert options_of(command) <= set(re.findall(r"`(--[\w-]+)", section)), f"{program} {name}"


def test_datasets_and_settings_are_explained_and_models_exist() -> None:
    from dataclasses import fields

    from gmn_prep.datasets import DATASETS
    from gmn_train.model.tables import MODELS
    from gmn_train.settings.model_settings import ModelConfig

    for page, names in {"datasets.md": [*DATASETS], "model.md": [item.name for item in fields(ModelConfig)]}.items():
        said = set(re.findall(r"`([^`\n]+)`", (DOCS / page).read_text()))
        assert [name for name in names if name not in said] == [], page
    models = (DOCS / "model.md").read_text().split("## Models by name")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)`", models, re.M)) <= set(MODELS)


def test_the_table_of_ratios_has_what_the_sections_below_it_have(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    shutil.copy(DOCS / "benchmarks.md", page)
    write_summary(page)
    assert page.read_text(encoding="utf-8") == (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert "| scipy" in page.read_text(encoding="utf-8").split("<!-- end peers -->")[0]


def test_the_page_of_results_has_the_tables_that_make_results_writes() -> None:
    """Title, text, rows and commands, as the files say; figures are of runs, which are not here."""
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    assert page.startswith(INTRO)
    assert KEPT.search(page)
    listed = re.search(r"^TABLES := (.+)$", (ROOT / "Makefile").read_text(), re.M)
    assert listed
    names = listed[1].split()
    assert sorted(names) == sorted(file.stem for file in (DOCS / "tables").glob("*.toml"))
    sections = page.split("\n## ")[1:]
    for name, section in zip(names, sections, strict=True):
        file = DOCS / "tables" / f"{name}.toml"
        others = read_leave_one_out(file)
        spec = others.table if others else read_spec(file)
        assert section.startswith(f"{spec.title}\n"), name
        assert spec.note.strip() in section, name
        if others:
            assert f"\n```\n{row_command(spec.row[0])}\n```\n" in section, name
            continue
        assert heading(spec, []).partition(" on ")[2] in section.splitlines()[2], name
        rows = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")]
        assert rows == ["model", *[row.name for row in spec.row]], name
        commands = "\n".join(row_command(row) for row in spec.row)
        assert f"\n```\n{commands}\n```\n" in section, name
        assert (f"](images/{name}.png)" in section) == bool(spec.plot), name


def test_every_key_of_a_table_is_explained() -> None:
    text = (DOCS / "comparing.md").read_text(encoding="utf-8")
    for key in (*fields(RowSpec), *fields(TableSpec)):
        assert re.search(rf"^\| .*`(\[\[)?{key.name}(\]\])?`.* \|", text, re.M), key.name
