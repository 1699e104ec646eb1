"""What `tokenize` says before it works, and paths that look like markup."""

import numpy as np
import pytest

from gmn_pipeline import Graph, Task
from gmn_pipeline.console.cli import run_app
from gmn_prep.cli import app
from gmn_prep.understood import describe_graph


def test_lines():
    graph = Graph.from_edges(
        [[0, 1], [2, 3]],
        4,
        x=np.ones((4, 8)),
        x_names=tuple("abcdefgh"),
        graph_ptr=[0, 2, 4],
        y=[[0.5], [np.nan]],
        splits=[[1, 0], [3, 1]],
        task=Task.of("graph", "regression", 1),
    )
    assert describe_graph(graph) == [
        "graph     2 graphs, 4 nodes, 2 edges",
        "task      graph regression, 1 targets, mae; 1 of 2 graphs labelled",
        "features  node: 8 numbers (a, b, c, d, e, f, ... 2 more)",
        "splits    2; the first has 1 train, 0 validation, 0 test",
    ]


def test_tokenize_says_it_first_and_takes_any_path(tmp_path, capfd):
    folder = tmp_path / "[x]" / "[/x]"
    folder.mkdir(parents=True)
    (folder / "edges.csv").write_text("src;dst\na;b\nb;c\nc;d\n")
    (folder / "nodes.csv").write_text("id;label\na;x\nb;y\nc;x\nd;y\n")
    arguments = ["tokenize", "--dataset", str(folder / "edges.csv"), "--m", "1", "--M", "1", "--s", "1"]
    for wanted in ("token store", "already exists"):
        with pytest.raises(SystemExit) as end:
            run_app(app, [*arguments, "--out", str(folder / "[/b].zarr")])
        assert end.value.code == 0
        out, err = capfd.readouterr()
        assert wanted in " ".join(out.split())  # a long path wraps the line
        if wanted == "token store":
            assert "2 classes (x, y)" in err
            assert err.index("2 classes (x, y)") < err.index("walks:")
    for command in ("inspect", "verify"):
        with pytest.raises(SystemExit) as end:
            run_app(app, [command, str(folder / "[/b].zarr")])
        assert end.value.code == 0
