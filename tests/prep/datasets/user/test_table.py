import json
import subprocess
import sys
from pathlib import Path

import pytest

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.metrics import METRICS
from gmn_prep.datasets import (
    DATASETS,
    DatasetOptions,
    dataset_identity,
    load_dataset,
    store_name,
)
from gmn_prep.report import report_datasets

GENERATORS = [name for name, line in DATASETS.items() if line.raw is None]


def test_table_imports_nothing_heavy():
    heavy = ("torch", "numba", "scipy", "pyarrow")
    script = f"import sys, gmn_prep.datasets; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"


def test_lines_are_complete():
    for name, line in DATASETS.items():
        assert name == line.name
        assert line.metric in METRICS
        assert line.size
        assert line.task.split(",")[0] in ("node", "graph", "link")
        assert line.source


def test_the_list_fits_eighty_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    report_datasets(as_json=False)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    for name, line in DATASETS.items():
        own = next(text for text in lines if text.split(" ")[0] == name)
        assert line.task in own
        assert own.endswith(line.metric)  # on one line, nothing folded


@pytest.mark.parametrize("name", GENERATORS)
def test_table_tells_what_the_generator_makes(name):
    line = DATASETS[name]
    options = DatasetOptions(nodes=2500) if "nodes" in line.takes else DatasetOptions(graphs=300)
    graph = load_dataset(name, options).graph.check()
    assert graph.task.metric == line.metric
    assert graph.task.item == line.task.split(",")[0]
    assert graph.splits is not None


@pytest.mark.parametrize("name", GENERATORS)
def test_identity_follows_the_content_only(name, tmp_path):
    usual = dataset_identity(name, DatasetOptions())
    assert usual == dataset_identity(name, DatasetOptions(data_root=tmp_path))
    assert str(tmp_path) not in json.dumps(dataset_identity(name, DatasetOptions(data_root=tmp_path)))
    assert usual != dataset_identity(name, DatasetOptions(seed=1))
    size = next(option for option in ("nodes", "graphs") if option in usual)
    assert usual == dataset_identity(name, DatasetOptions(**{size: usual[size]}))
    assert usual != dataset_identity(name, DatasetOptions(**{size: 7}))


@pytest.mark.parametrize(
    ("name", "store"),
    [
        ("ogbn-arxiv", "arxiv"),
        ("OGBN_Arxiv", "arxiv"),
        ("minesweeper", "minesweeper"),
        ("some/where/my.graph.npz", "my.graph"),
        ("edges.csv", "edges"),
    ],
)
def test_store_name(name, store):
    assert store_name(name) == store


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("minesweper", DatasetOptions(), "did you mean 'minesweeper'"),
        ("zzz", DatasetOptions(), "known: minesweeper-grid"),
        ("no/such/file.npz", DatasetOptions(), "no/such/file.npz does not exist"),
        ("nothing.npz", DatasetOptions(), "nothing.npz does not exist"),
        (
            "ogbn-arxiv",
            DatasetOptions(nodes=5),
            "--nodes does not apply to ogbn-arxiv, only to minesweeper-grid",
        ),
        ("minesweeper-grid", DatasetOptions(graphs=5), "--graphs does not apply"),
        (
            "sbm-pattern",
            DatasetOptions(node_table=Path("n.csv")),
            "--node-table does not apply .* files of your own",
        ),
    ],
)
@pytest.mark.parametrize("ask", [load_dataset, dataset_identity])
def test_mistakes_are_said_in_one_line(ask, name, options, message):
    with pytest.raises(DatasetError, match=message) as caught:
        ask(name, options)
    assert "\n" not in str(caught.value)


def test_directed_is_said_to_change_nothing():
    loaded = load_dataset("minesweeper-grid", DatasetOptions(nodes=9, directed=True))
    assert loaded.notices == ("minesweeper-grid has no directed edges; --directed changes nothing",)
