"""A graph sorted on disk is the graph of the plain reader: arrays, report and notes."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets.entry import DatasetOptions, Scratch
from gmn_prep.datasets.user.tables import edge_query, node_stream
from gmn_prep.datasets.user.user_file import load_user_file

pytest.importorskip("duckdb")


def load(path: Path, *, large: bool, **options: Any) -> Any:
    scratch = Scratch(path.parent / "building", 128 << 20, 2) if large else None
    return load_user_file(path, DatasetOptions(scratch=scratch, **options))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=150),
    st.sampled_from([".parquet", ".csv", ".tsv"]),
    st.sampled_from(["int64", "int32", "uint64", "string"]),
    st.integers(1, 3),
    st.integers(1, 64),
)
def test_the_same_graph(edges: list[tuple[int, int]], suffix: str, kind: str, files: int, batch: int) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_query, "BATCH", batch)  # slots of one node fall into several batches
        for number in range(files):
            rows = np.array(edges[number::files], dtype=np.int64).reshape(-1, 2)
            table = pa.table({c: pa.array(rows[:, i]).cast(kind) for i, c in enumerate(("source", "Target"))})
            place = Path(name) / f"edges-{number}{suffix}"
            if suffix == ".parquet":
                parquet.write_table(table, place)
            else:
                csv.write_csv(table, place, csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ","))
        path = Path(name) / f"edges-*{suffix}"
        (plain, plain_notes), (sorted_, notes) = load(path, large=False), load(path, large=True)
        assert plain.report == sorted_.report
        assert plain_notes == notes
        assert plain.arrays().keys() == sorted_.arrays().keys()
        for key, array in plain.arrays().items():
            assert array.dtype == sorted_.arrays()[key].dtype
            assert np.array_equal(array, sorted_.arrays()[key])


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("src,dst\na,b\n", {}, "1 rows whose ids are not whole numbers from 0"),
        ("src,dst\n0,\n", {}, "1 rows whose ids are not whole numbers from 0"),
        ("src,dst\n0,5000\n", {}, "names rather than numbers"),
        ("src,dst\n", {}, "has no rows"),
        ("src,dst,weight\n0,1,2\n", {}, "--drop weight"),
        ("src,dst\n0,1\n", {"directed": True}, "--directed and --memory do not go together"),
        ("from_,dst\n0,1\n", {}, "it needs one named src"),
    ],
)
def test_what_cannot_be_sorted_is_told(tmp_path: Path, content: str, options: dict[str, Any], message: str) -> None:
    (tmp_path / "edges.csv").write_text(content)
    with pytest.raises(DatasetError, match=message):
        load(tmp_path / "edges.csv", large=True, **options)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_of_nodes_goes_with_it(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Features of several types, labels, a split, and columns that are left out."""
    monkeypatch.setattr(node_stream, "ROWS", 50)
    rng = np.random.default_rng(0)
    edges, n = rng.integers(0, 300, (900, 2)), 320
    days = pa.array(rng.integers(0, 9999, n).astype("int32")).cast(pa.date32())
    nodes = pa.table({
        "id": np.arange(n), "a": rng.normal(size=n), "day": days, "label": rng.integers(0, 3, n),
        "split": rng.choice(["train", "val", "test"], n), "b": rng.integers(0, 9, n), "c": rng.normal(size=n),
    })  # fmt: skip
    write = parquet.write_table if suffix == ".parquet" else csv.write_csv
    write(pa.table({"src": edges[:, 0], "dst": edges[:, 1]}), tmp_path / f"edges{suffix}")
    write(nodes, tmp_path / f"nodes{suffix}")
    for options in ({}, {"features": ("b", "a")}, {"drop": ("a",), "task": "node-regression"}, {"label": "b,c"}):
        (plain, notes), (other, others) = (
            load(tmp_path / f"edges{suffix}", large=large, **options) for large in (False, True)
        )
        assert notes == others
        assert (plain.task, plain.x_names, plain.report) == (other.task, other.x_names, other.report)
        assert plain.arrays().keys() == other.arrays().keys()
        for key, array in plain.arrays().items():
            assert np.array_equal(array, other.arrays()[key]), key


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("id,a\n1,1\n0,1\n", "has other ids than 0, 1, 2"),
        ("id,a\n0,1\n", "names node '1', which the table of nodes does not list"),
        ("id,a\n0,x\n1,y\n", "column 'a' of nodes.csv is text"),
        ("id,graph\n0,0\n1,1\n", "tells graphs apart"),
    ],
)
def test_what_a_table_of_nodes_may_not_hold(tmp_path: Path, nodes: str, message: str) -> None:
    (tmp_path / "edges.csv").write_text("src,dst\n0,1\n")
    (tmp_path / "nodes.csv").write_text(nodes)
    with pytest.raises(DatasetError, match=message):
        load(tmp_path / "edges.csv", large=True)


def test_columns_may_be_named_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("a;b;w\n0;1;5\n1;2;5\n")
    graph, _ = load(tmp_path / "edges.csv", large=True, src="a", dst="b", drop=("w",))
    plain, _ = load(tmp_path / "edges.csv", large=False, src="a", dst="b", drop=("w",))
    assert np.array_equal(graph.indices, plain.indices)
    assert replace(graph.report) == plain.report
