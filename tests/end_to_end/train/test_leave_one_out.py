"""A table that leaves each dataset out of the choice of settings in turn."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmn_pipeline import TokenSettings
from gmn_pipeline.errors import ConfigError
from gmn_train.tables.leave_one_out import choose_on_others, read_leave_one_out
from gmn_train.tables.making import make_tables
from tests.stores import ring_graph, write_store

SPEC = """
title = "Left out"
{datasets}
[[settings]]
label = "one layer"
set = {{ epochs = 2, "model.width" = 8, "model.node_layers" = 1 }}
[[settings]]
label = "two layers"
set = {{ epochs = 2, "model.width" = 8, "model.node_layers" = 2 }}
"""


def test_the_left_out_dataset_has_no_say() -> None:
    validation = {"a": {"x": 0.9, "y": 0.5, "z": 0.5}, "b": {"x": 0.1, "y": 0.6, "z": 0.6}}
    assert choose_on_others(validation, "x") == "b"
    assert choose_on_others(validation, "y") == "a"


@given(st.dictionaries(st.sampled_from("abcd"), st.tuples(*[st.floats(0, 1)] * 3), min_size=1))
def test_the_choice_is_the_best_mean_of_the_others(scores: dict[str, tuple[float, float, float]]) -> None:
    validation = {label: dict(zip("xyz", row, strict=True)) for label, row in scores.items()}
    chosen = choose_on_others(validation, "z")
    assert chosen is not None
    means = {label: (row[0] + row[1]) / 2 for label, row in scores.items()}
    assert means[chosen] == pytest.approx(max(means.values()), abs=1e-9)


def test_what_was_not_run_everywhere_is_not_chosen() -> None:
    assert choose_on_others({"a": {"x": 0.9, "y": 0.1}, "b": {"x": 0.8, "y": 0.2, "z": 0.9}}, "x") == "b"
    assert choose_on_others({"a": {}}, "x") is None


@pytest.mark.usefixtures("forked_runs")
def test_every_setting_runs_on_every_dataset_beside_its_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = []
    for name, size in (("small", 40), ("large", 60)):
        write_store(tmp_path / f"{name}.zarr", ring_graph(size, size), TokenSettings(1, 2, 1))
        places.append(f'[[dataset]]\ndataset = "{name}"\nstore = "{name}.zarr"\n')
    file = tmp_path / "out.toml"
    file.write_text(SPEC.format(datasets="".join(places)))
    (table,) = make_tables([file], tmp_path / "out", workers=2, threads=1, only_write=False, say=lambda _: None)
    assert len(list(tmp_path.rglob("summary.json"))) == 8
    text = table.markdown.read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    validation = {
        label: {name: mean_validation(table, f"{label}, gmn, {name}") for name in ("small", "large")}
        for label in ("one layer", "two layers")
    }
    for dataset, other in (("small", "large"), ("large", "small")):
        (row,) = [row for row in rows if row[0] == dataset]
        assert row[1] == max(validation, key=lambda label: validation[label][other])
        assert row[4] == "1"
    assert sum(row[:2] == ["one layer", "mpnn"] for row in rows) == 1


def mean_validation(table, name: str) -> float:
    (result,) = [result for result in table.results if result.row.name == name]
    (run,) = result.runs
    return json.loads((run.path / "summary.json").read_text())["val"]


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ("", "[Ff]ield required"),
        ('[[dataset]]\ndataset = "a"\n', "at least two"),
        ("[[dataset]]\nx = 1\n", "dataset.0"),
    ],
)
def test_mistakes(tmp_path: Path, datasets: str, message: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(SPEC.format(datasets=datasets))
    with pytest.raises(ConfigError, match=message):
        read_leave_one_out(file)
