import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets import DatasetOptions, dataset_identity, load_dataset

PATH = np.array([[0, 1, 2], [1, 2, 3]])  # 0 - 1 - 2 - 3, as edge_index


def save(folder, **arrays):
    path = folder / "mine.npz"
    np.savez(path, **arrays)
    return str(path)


def load(path, **options):
    return load_dataset(path, DatasetOptions(**options))


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 12),
    data=st.data(),
    directed=st.booleans(),
    form=st.sampled_from(["edge_index", "edges", "csr"]),
)
def test_round_trip(tmp_path_factory, n, data, directed, form):
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1])
    edges = np.array(data.draw(st.lists(ends, max_size=30)) if n > 1 else [], dtype=np.int64).reshape(-1, 2)
    rng = np.random.default_rng(n)
    graph = Graph.from_edges(
        edges,
        n,
        directed=directed,
        edge_attr=edges[:, :1] + edges[:, 1:].astype(np.float32),
        x=rng.normal(size=(n, 3)),
        y=rng.integers(0, 3, n),
        splits=rng.integers(0, 4, (2, n)).astype(np.uint8),
        task=Task.of("node", "multiclass", 3),
    )
    arrays = {
        "edge_index": {"edge_index": np.stack([graph.slot_sources, graph.indices])},
        "edges": {"edges": np.stack([graph.slot_sources, graph.indices], axis=1)},
        "csr": {"indptr": graph.indptr, "indices": graph.indices},
    }[form]
    fields = {name: getattr(graph, name) for name in ("x", "y", "edge_attr", "splits")}
    path = save(tmp_path_factory.mktemp("npz"), **arrays, **fields, directed=directed, classes=3)
    again = load(path).graph
    assert again.directed == directed
    assert again.task == graph.task
    for name, array in graph.arrays().items():
        assert np.array_equal(again.arrays()[name], array), name


def test_many_graphs_with_a_graph_task(tmp_path):
    arrays = {"edges": [[0, 1], [2, 3]], "num_nodes": 5, "graph_ptr": [0, 2, 5], "y": [0.5, 1.5]}
    loaded = load(save(tmp_path, **arrays, kind="regression", metric="mae", splits=[[1, 3]]))
    assert loaded.name == "mine"
    assert (loaded.graph.num_graphs, loaded.graph.num_nodes) == (2, 5)
    assert loaded.graph.task == Task.of("graph", "regression", 1, "mae")
    assert loaded.notices == ()


def test_pairs_make_a_link_task(tmp_path):
    loaded = load(save(tmp_path, edge_index=PATH, pairs=[[0, 3], [1, 2]], y=[0, 1], splits=[1, 3]))
    assert loaded.graph.task == Task.of("link", "binary", 2)
    assert loaded.graph.pairs.tolist() == [[0, 3], [1, 2]]


def test_masks_with_several_splits(tmp_path):
    train = np.array([[1, 0], [0, 1], [0, 0], [0, 0]], dtype=bool)
    loaded = load(save(tmp_path, edge_index=PATH, y=[0, 1, 0, 1], train_mask=train, test_mask=~train))
    assert loaded.graph.splits.tolist() == [[1, 3, 3, 3], [3, 1, 3, 3]]


def test_draws_a_split_of_the_known_labels_and_says_so(tmp_path):
    n = 1000
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    labels = np.where(np.arange(n) < 500, np.arange(n) % 3, -1)
    path = save(tmp_path, edge_index=ring, y=labels)
    loaded = load(path, seed=4)
    assert loaded.notices == (
        "label -1 is read as unknown: 500 of 1,000 items",
        "no split given: drew a random 60/20/20 split with seed 4",
    )
    assert np.bincount(loaded.graph.splits[0]).tolist() == [500, 300, 100, 100]
    assert np.all(loaded.graph.splits[0, 500:] == 0)
    assert np.array_equal(load(path, seed=4).graph.splits, loaded.graph.splits)
    assert not np.array_equal(load(path, seed=5).graph.splits, loaded.graph.splits)


def save_pairs_of_nodes(tmp_path, graphs, y):
    """Graphs of two joined nodes each, with a label per node."""
    return save(
        tmp_path,
        edge_index=np.arange(2 * graphs).reshape(graphs, 2).T,
        y=y,
        x=np.ones((2 * graphs, 1), np.float32),
        graph_ptr=np.arange(0, 2 * graphs + 1, 2),
    )


def test_a_drawn_split_of_nodes_keeps_graphs_whole(tmp_path):
    y = np.tile([0, 1], 50)
    y[:4] = -1  # two graphs without a label
    loaded = load(save_pairs_of_nodes(tmp_path, 50, y), task="node")
    assert loaded.notices[-1] == "no split given: drew a random 60/20/20 split with seed 0, each graph as a whole"
    first, second = loaded.graph.splits[0].reshape(50, 2).T
    assert np.array_equal(first, second)
    assert np.bincount(first).tolist() == [2, 29, 9, 10]


@pytest.mark.parametrize(
    ("graphs", "y"),
    [(5, np.tile([0, 1], 5)), (50, np.repeat([0, 1], [94, 6]))],
    ids=["few graphs", "a class of three graphs that no such split shares out"],
)
def test_a_drawn_split_of_nodes_cuts_graphs_where_it_must(tmp_path, graphs, y):
    loaded = load(save_pairs_of_nodes(tmp_path, graphs, y), task="node")
    assert "as a whole" not in loaded.notices[-1]
    assert [set(y[loaded.graph.splits[0] == part]) for part in (1, 2, 3)] == [{0, 1}] * 3


def test_says_which_edges_were_dropped(tmp_path):
    loaded = load(save(tmp_path, edges=[[0, 0], [0, 1], [0, 1]]))
    assert loaded.graph.num_edges == 1
    assert loaded.graph.task is None
    assert loaded.notices == ("3 edges given, 1 self-loops and 1 duplicates dropped, 1 reverses added",)


@pytest.mark.parametrize(
    ("y", "options", "task"),
    [
        ([0, 1, 2, 1], {}, Task.of("node", "multiclass", 3)),
        ([0, 1, 0, 1], {"task": "binary"}, Task.of("node", "binary", 2, "roc_auc")),
        ([False, True, False, True], {}, Task.of("node", "multiclass", 2, class_names=("False", "True"))),
        ([0.0, 1.0, 0.0, 1.0], {}, Task.of("node", "multiclass", 2)),
        ([0.0, 1.0, 0.0, 1.0], {"task": "regression"}, Task.of("node", "regression", 1)),
        ([0.0, 1.0, np.nan, 1.0], {"task": "node-multiclass"}, Task.of("node", "multiclass", 2)),
        ([[0, 1], [1, 1], [0, 0], [1, 0]], {}, Task.of("node", "multilabel", 2)),
        ([0, 1, 2, 1], {"metric": "macro_f1", "classes": 5}, Task.of("node", "multiclass", 5, "macro_f1")),
        ([0, 1, 0, 1], {"metric": "roc_auc"}, Task.of("node", "binary", 2, "roc_auc")),
        ([0, 1, 0, 1], {"metric": "accuracy"}, Task.of("node", "multiclass", 2, "accuracy")),
    ],
)
def test_task_is_told_or_found(tmp_path, y, options, task):
    assert load(save(tmp_path, edge_index=PATH, y=y), **options).graph.task == task


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"edge_idx": PATH}, {}, "mine.npz: key 'edge_idx' is not known.*did you mean 'edge_index'"),
        ({"x": np.ones((2, 2))}, {}, "there are no edges; give edges as"),
        ({"edge_index": PATH, "edges": PATH.T}, {}, "found edge_index, edges; give edges as"),
        ({"indptr": [0, 1]}, {}, "found indptr; give edges as"),
        ({"indptr": [0, 9], "indices": [0]}, {}, "mine.npz: indptr runs from 0 to 9"),
        ({"indptr": [0, 1], "indices": [7]}, {}, "mine.npz: indices holds node ids 7..7"),
        ({"edge_index": PATH.T}, {}, r"edge_index has shape \(3, 2\); it must be \(2, E\)"),
        ({"edges": [[0, -1]]}, {}, "edges name nodes -1"),
        ({"edges": [[0, 9]], "num_nodes": 5}, {}, "edges name nodes 0..9; with 5 nodes"),
        ({"edge_index": PATH, "x": np.full((4, 1), np.nan)}, {}, "mine.npz: x has 4 values that are NaN"),
        ({"edge_index": PATH, "y": [0, 1, 2, 3]}, {"classes": 3}, "labels hold 0..3; with 3 classes"),
        ({"edge_index": PATH, "y": [0, 1]}, {}, r"labels have shape \(2,\)"),
        ({"edge_index": PATH, "y": [0, 1, 0, 1]}, {"task": "nodes"}, "task 'nodes' is not known.*'node'"),
        ({"edge_index": PATH, "y": [0, 1, 0, 1]}, {"task": "node-graph"}, "task 'node-graph' is not known"),
        ({"edge_index": PATH, "y": [0, 1, 0, 1]}, {"metric": "mae"}, "metric 'mae' does not fit"),
        ({"edge_index": PATH, "y": [0, 1, 0, 1], "kind": "binry"}, {}, "task kind is 'binry'.*'binary'"),
        ({"edge_index": PATH}, {"task": "binary"}, "a task is given but there are no labels"),
        ({"edge_index": PATH, "splits": [4, 1, 1, 1], "y": [0, 1, 1, 0]}, {}, "splits holds 4"),
        ({"edge_index": PATH, "splits": [1] * 4, "val_mask": [True] * 4}, {}, "give one or the other"),
        ({"edge_index": PATH, "train_mask": [True] * 4, "val_mask": [True] * 4}, {}, "val_mask overlaps"),
        ({"edge_index": PATH, "train_mask": [1] * 4}, {}, "masks must be boolean"),
        ({"edge_index": PATH, "y": np.array([{}], dtype=object)}, {}, "not an .npz file of plain arrays"),
        ({"edge_index": PATH, "x": ["a", "b", "c", "d"]}, {}, "mine.npz: x is of type <U1; it must hold numbers"),
        ({"edge_index": PATH, "num_nodes": "many"}, {}, "mine.npz: invalid literal"),
        ({"edge_index": PATH * 0.5}, {}, "edges is of type float64; node ids are integers"),
        ({"edge_index": PATH + 10**12}, {}, "mine.npz: 1,000,000,000,004 nodes with only 3 edges"),
        ({"edge_index": PATH}, {"nodes": 9}, "--nodes sets the size of a generated dataset"),
    ],
)
def test_mistakes_are_said_in_one_line(tmp_path, arrays, options, message):
    with pytest.raises(DatasetError, match=message) as caught:
        load(save(tmp_path, **arrays), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"not a zip file"])
def test_a_file_that_is_no_npz(tmp_path, content):
    path = tmp_path / "broken.npz"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"broken\.npz is not an \.npz file"):
        load(str(path))


def test_a_folder_and_an_unknown_suffix(tmp_path):
    with pytest.raises(DatasetError, match=r"is a folder without a dataset; one of your own is one of \.npz, \.pt"):
        load(str(tmp_path))
    (tmp_path / "graph.gml").touch()
    with pytest.raises(DatasetError, match=r"is a '\.gml' file"):
        load(str(tmp_path / "graph.gml"))


def test_identity_is_of_the_content_and_the_options(tmp_path):
    (tmp_path / "one").mkdir()
    path = save(tmp_path, edge_index=PATH, y=[0, 1, 0, 1])
    copy = save(tmp_path / "one", edge_index=PATH, y=[0, 1, 0, 1])
    usual = dataset_identity(path, DatasetOptions())
    assert usual == dataset_identity(copy, DatasetOptions())
    assert str(tmp_path) not in json.dumps(usual)
    for other in ({"directed": True}, {"seed": 1}, {"task": "binary"}, {"classes": 3}):
        assert usual != dataset_identity(path, DatasetOptions(**other))
    save(tmp_path / "one", edge_index=PATH, y=[0, 1, 1, 1])
    assert usual != dataset_identity(copy, DatasetOptions())
