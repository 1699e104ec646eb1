"""`gmn-train table`: real runs in processes of their own, skipped when done, resumed when killed."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gmn_pipeline import TokenSettings
from gmn_pipeline.errors import ConfigError
from gmn_train.model.tables import MODELS
from gmn_train.tables.making import make_tables, write_results
from gmn_train.tables.published import published, published_datasets
from gmn_train.tables.running import collect, plan_jobs
from gmn_train.tables.spec import read_spec
from gmn_train.tables.writing import to_markdown, to_page
from tests.end_to_end.commands import start
from tests.stores import ring_graph, write_store

SPEC = """
title = "Rings"
note = "Small ones."
plot = "epoch"

[defaults]
dataset = "ring"
store = "{store}"
set = {{ epochs = 3, "model.width" = 16, "model.node_layers" = 1 }}

[[row]]
model = "gmn"
seeds = "0,1"

[[row]]
model = "mlp"

[[row]]
label = "an ordering that the store lacks"
model = "gmn-pagerank"
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_runs: None) -> Path:  # noqa: ARG001
    monkeypatch.chdir(tmp_path)
    store = write_store(tmp_path / "ring.zarr", ring_graph(60, 60), TokenSettings(1, 2, 1)).path
    file = tmp_path / "rings.toml"
    file.write_text(SPEC.format(store=store))
    return file


def make(spec: Path, out: Path, **options):
    said: list[str] = []
    tables = make_tables([spec], out, **{"workers": 2, "threads": 1, "only_write": False, "say": said.append} | options)
    return tables[0], "\n".join(said)


def test_a_table_runs_skips_what_is_done_and_tells_what_failed(spec, tmp_path):
    table, said = make(spec, tmp_path / "out")
    assert "Rings: 4 runs" in said
    text = table.markdown.read_text()
    rows = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "±" in rows["gmn"]
    assert "has no ordering 'pagerank'" in rows["an ordering that the store lacks"]
    assert "--model gmn --seeds 0,1 --set epochs=3 --set model.width=16 --set model.node_layers=1" in text
    assert (tmp_path / "out" / "rings" / "plot.png").stat().st_size > 1000
    page = table.page.read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", ""), "the page must need nothing else"
    before = sorted(p.stat().st_mtime_ns for p in tmp_path.rglob("summary.json"))
    again, said = make(spec, tmp_path / "out")
    assert "3 of 4 runs are already finished" in said
    assert sorted(p.stat().st_mtime_ns for p in tmp_path.rglob("summary.json")) == before
    assert again.markdown.read_text() == text
    results = write_results([again], tmp_path / "docs" / "results.md")
    assert "## Rings" in results.read_text()
    assert (tmp_path / "docs" / "images" / "rings.png").exists()
    kept = "<!-- kept -->\n\nBy hand.\n\n<!-- end kept -->\n\n"
    wanted = results.read_text().replace("## Rings", f"{kept}## Rings")
    results.write_text(wanted + "lost\n")
    assert write_results([again], results).read_text() == wanted, "what is between the marks stays, and nothing else"


def test_a_killed_table_goes_on(spec, tmp_path, monkeypatch):
    """SIGKILL to the table and its runs; the same command then ends with the same figures as one left alone."""
    text = spec.read_text().replace("epochs = 3", "epochs = 40")
    spec.write_text(text[: text.index('[[row]]\nmodel = "mlp"')])
    out = tmp_path / "out"
    words = ("table", spec, "--out", out)
    with start("gmn-train", *words, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        while not list(tmp_path.rglob("metrics.jsonl")):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    killed, _ = make(spec, out, only_write=True)
    assert killed.open_runs > 0
    assert "not run" in killed.markdown.read_text() or " of 2" in killed.markdown.read_text()
    make(spec, out)
    found = {path.relative_to(tmp_path): read_figures(path) for path in tmp_path.rglob("summary.json")}
    assert len(found) == 2
    (tmp_path / "alone").mkdir()
    monkeypatch.chdir(tmp_path / "alone")
    make(spec, out)
    for path, figures in found.items():
        assert read_figures(tmp_path / "alone" / path) == figures


def read_figures(path: Path) -> tuple[float, float, int]:
    summary = json.loads(path.read_text())
    return summary["val"], summary["test"], summary["best_epoch"]


def test_other_settings_are_other_runs_and_equal_ones_are_shared(spec, tmp_path):
    head = spec.read_text().partition("[[row]]")[0]
    spec.write_text(head + '[[row]]\nmodel = "mlp"\nseeds = "0,1"\n')
    make(spec, tmp_path / "out")
    other = tmp_path / "other.toml"
    other.write_text(spec.read_text().replace("0,1", "1,2"))
    _, said = make(other, tmp_path / "out")
    assert "1 of 2 runs are already finished" in said
    other.write_text(spec.read_text().replace("epochs = 3", "epochs = 4"))
    _, said = make(other, tmp_path / "out")
    assert "already finished" not in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "field required"),
        ('title = "a"', "has no \\[\\[row\\]\\]"),
        ('title = "a"\n[[row]]\nmodel = "gmn"', "row.0.dataset: field required"),
        ('title = "a"\n[[row]]\ndataset = "x"\nmodell = "gmn"', "row.0.modell"),
        ('title = "a"\n[[row]]\ndataset = "x"\nmodel = "gmm"', "did you mean 'gmn'"),
        ('title = "a"\n[[row]]\ndataset = "x"\nseeds = "a"', "--seeds is 'a'"),
        ('title = "a"\n[[row]]\ndataset = "x"\n[[row]]\ndataset = "y"', "two rows are called 'gmn'"),
    ],
)
def test_mistakes_in_a_spec(tmp_path, text, message):
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_spec(file)


def test_published_figures_are_of_known_models_the_best_first():
    for name in published_datasets():
        dataset = published(name)
        assert set(dataset.paper) <= set(MODELS)
        values = [float(figure.value) for figure in dataset.figure]
        assert values == sorted(values, reverse=name != "peptides-struct"), "its mean absolute error is to be small"


def test_published_figures_stand_beside_ours(tmp_path):
    file = tmp_path / "a.toml"
    row = '\n[[row]]\ndataset = "minesweeper"'
    file.write_text(f'title = "a"{row}{row}\nlabel = "other"{row}\nlabel = "asked for"\npaper = true')
    spec = read_spec(file)
    text = to_markdown(spec, collect(spec, plan_jobs(spec), {}), None)
    assert "best public figure: 0.9899 ± 0.0016 (BuNN, runs unknown, second-hand)." in text
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert lines[1].endswith("| 0.9101 ± 0.0023 |")
    assert lines[2].endswith("| – |"), "the paper's figure is for the model of that name only"
    assert lines[3].endswith("| 0.9101 ± 0.0023 |")


def test_the_best_graph_network_is_told_where_the_best_is_none():
    """And digits stay as they were published."""
    assert published("peptides-func").best == (
        "0.7460 (ECFP + LightGBM, fitted on train and validation, runs unknown, second-hand); "
        "best of graph networks: 0.7311 (S²GCN, runs unknown, second-hand)"
    )
    assert published("tolokers").best == "0.8591 ± 0.0074 (Polynormer-r, 10 runs, second-hand)"
    assert published("ring-transfer").best is None


def test_a_table_of_costs_says_nothing_of_accuracy(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('title = "a"\nmeasure = "cost"\n[[row]]\ndataset = "minesweeper"')
    spec = read_spec(file)
    results = collect(spec, plan_jobs(spec), {})
    for text in (to_markdown(spec, results, None), to_page(spec, results, None)):
        assert "s/epoch" in text
        assert not re.search(r"validation</th>|validation \||0\.9786|0\.9101", text)
