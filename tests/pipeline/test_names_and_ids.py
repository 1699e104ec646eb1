"""Names of columns and classes, and the user's ids: kept by a store, and as they were where there are none."""

import json

import numpy as np
import pyarrow as pa
import pytest
import zarr

from gmn_pipeline import Graph, Task, TokenSettings
from gmn_pipeline.errors import GraphError
from gmn_pipeline.graph import Texts
from gmn_pipeline.names import LONGEST, match_columns
from tests.stores import ring_graph, write_store

IDS = [f"p{i}é" for i in range(40)]


def named_graph() -> Graph:
    graph = ring_graph(edge_features=True)
    return graph.replace(
        x_names=tuple("abcde"),
        edge_names=("u", "v", "w"),
        task=Task.of("node", "multiclass", 3, class_names=("red", "green", "blue")),
    ).with_ids(IDS)


def test_a_store_keeps_names_and_ids(tmp_path):
    store = write_store(tmp_path / "a.zarr", named_graph(), TokenSettings(1, 2, 1))
    facts = store.manifest.graph
    assert facts.x.names == tuple("abcde")
    assert facts.edge_attr.names == ("u", "v", "w")
    graph = store.graph.check()
    assert (graph.x_names, graph.edge_names) == (tuple("abcde"), ("u", "v", "w"))
    assert graph.task.class_names == ("red", "green", "blue")
    assert graph.task.class_name(2) == "blue"
    assert list(graph.node_ids) == IDS
    assert graph.node_ids.take(np.array([3, 0])) == ["p3é", "p0é"]
    assert graph.graph_ids is None


def test_plain_zarr_and_arrow_read_the_ids(tmp_path):
    store = write_store(tmp_path / "a.zarr", named_graph(), TokenSettings(1, 2, 1))
    group = zarr.open_group(store.path, mode="r")["graph"]
    ptr, content = group["node_id_ptr"][:], group["node_id_bytes"][:]
    column = pa.LargeStringArray.from_buffers(40, pa.py_buffer(ptr), pa.py_buffer(content))
    assert column.to_pylist() == IDS


def test_names_and_ids_are_part_of_the_fingerprint(tmp_path):
    settings = TokenSettings(1, 2, 1)
    plain, named = ring_graph(edge_features=True), named_graph()
    kinds = [plain, named, named.replace(x_names=tuple("abcdx")), named.with_ids([f"q{i}" for i in range(40)])]
    prints = [write_store(tmp_path / f"{i}.zarr", g, settings).fingerprint for i, g in enumerate(kinds)]
    assert len(set(prints)) == 4


def test_a_store_without_names_does_not_mention_them(tmp_path):
    store = write_store(tmp_path / "a.zarr", ring_graph(edge_features=True), TokenSettings(1, 2, 1))
    text = (store.path / "zarr.json").read_text()
    assert "names" not in text
    assert "_id_" not in text
    assert "class_names" not in json.dumps(Task.of("node", "binary", 2).as_dict())


def test_texts():
    texts = Texts.of(["", "a", 5, "日本"])
    assert (len(texts), list(texts), texts[-1]) == (4, ["", "a", "5", "日本"], "日本")
    assert texts.rows(["日本", "x", "a"]).tolist() == [3, -1, 1]
    with pytest.raises(IndexError):
        texts[4]
    with pytest.raises(GraphError, match="not UTF-8"):
        Texts(np.array([0, 1]), np.array([0xFF], dtype=np.uint8)).check("ids")
    with pytest.raises(GraphError, match="within a character"):
        Texts(np.array([0, 1, 2]), np.frombuffer("é".encode(), np.uint8)).check("ids")
    with pytest.raises(GraphError, match="the id of row 0 is not UTF-8 text"):
        Texts(np.array([0, 1]), np.array([0xFF], dtype=np.uint8)).rows(["a"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x_names": ("a",)}, "1 names of x for 5"),
        ({"x_names": ("a", "b", "c", "d", "a")}, "names of x hold 'a' twice"),
        ({"x_names": ("a", "b", "c", "d", "e" * (LONGEST + 1))}, "at most 1,000 characters"),
        ({"node_id_ptr": np.arange(41)}, "required together"),
        ({"node_id_ptr": np.arange(40), "node_id_bytes": np.full(39, 65)}, "for 40 ids"),
        ({"node_id_ptr": np.array([0, 2**62, -(2**62)] + [1] * 38), "node_id_bytes": np.full(1, 65)}, "goes down"),
    ],
)
def test_bad_names_and_ids_are_refused(fields, message):
    with pytest.raises(GraphError, match=message):
        ring_graph().replace(**fields).check()


def test_class_names_are_as_many_as_classes():
    with pytest.raises(GraphError, match="2 class names for 3"):
        Task.of("node", "multiclass", 3, class_names=("a", "b"))


def test_columns_are_matched_by_name():
    index, ignored = match_columns(("age", "team=a", "team=b"), ("extra", "team=b", "team=c", "age"))
    assert (index.tolist(), ignored) == ([3, -1, 1], ("extra", "team=c"))
    with pytest.raises(GraphError, match=r"no column 'ages'.*did you mean 'age'"):
        match_columns(("ages",), ("age",))
    with pytest.raises(GraphError, match="no column 'team=a'"):
        match_columns(("team=a",), ("age",))
