import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.names import match_columns
from gmn_pipeline.task import Task
from gmn_prep.datasets import DatasetOptions, dataset_identity, load_dataset


def write(path, columns):
    table = pa.table(columns)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        csv.write_csv(table, path, csv.WriteOptions(delimiter="\t" if path.suffix == ".tsv" else ","))
    return path


def load(path, **options):
    return load_dataset(str(path), DatasetOptions(**options))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("text", [False, True])
def test_edges_and_nodes(tmp_path, suffix, text):
    ids = ["d", "a", "c", "b"] if text else [40, 10, 30, 20]
    edges = {"Source": [ids[0], ids[1]], "target": [ids[1], ids[3]], "weight": [0.5, 2.0], "kind": [1, 0]}
    nodes = {
        "id": ids,
        "age": [1, 2, 3, 4],
        "label": ["red", "blue", None, "red"],
        "size": [0.1, 0.2, 0.3, 0.4],
        "split": ["train", "val", None, "test"],
    }
    write(tmp_path / f"nodes{suffix}", nodes)
    loaded = load(write(tmp_path / f"edges{suffix}", edges))
    graph = loaded.graph
    assert list(graph.node_ids) == sorted(str(name) for name in ids)
    assert np.stack([graph.slot_sources, graph.indices]).tolist() == [[0, 0, 1, 3], [1, 3, 0, 0]]
    assert graph.edge_attr.tolist() == [[2, 0], [0.5, 1], [2, 0], [0.5, 1]]
    assert np.allclose(graph.x, [[2, 0.2], [4, 0.4], [3, 0.3], [1, 0.1]])
    assert graph.y.tolist() == [0, 1, -1, 1]
    assert graph.splits.tolist() == [[2, 3, 0, 1]]
    assert graph.task == Task.of("node", "multiclass", 2, class_names=("blue", "red"))
    assert (graph.x_names, graph.edge_names) == (("age", "size"), ("weight", "kind"))
    assert loaded.notices == ()


def test_numbers_without_a_node_table(tmp_path):
    graph = load(write(tmp_path / "g.csv", {"u": [0, 5], "v": [5, 2]}), directed=True).graph
    assert (graph.num_nodes, graph.num_edges, graph.directed) == (6, 2, True)
    assert graph.x is None
    assert graph.task is None


def test_text_without_a_node_table(tmp_path):
    graph = load(write(tmp_path / "g.csv", {"from": ["b", "a"], "to": ["c", "c"]})).graph
    assert np.stack([graph.slot_sources, graph.indices]).tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]]


@pytest.mark.parametrize(
    ("edges", "nodes"),
    [
        ("edges.csv", "nodes.parquet"),
        ("web_edges.csv", "web_nodes.csv"),
        ("web.csv", "web_nodes.csv"),
        ("web.parquet", "web.nodes.csv"),
    ],
)
def test_node_table_is_found_beside_the_edges(tmp_path, edges, nodes):
    write(tmp_path / nodes, {"id": [0, 1, 2], "y": [0.5, None, 1.5]})
    path = write(tmp_path / edges, {"src": [0], "dst": [1]})
    graph = load(path).graph
    assert graph.num_nodes == 3
    assert graph.task.kind == "regression"
    assert graph.y[:, 0].tolist() == [0.5, pytest.approx(np.nan, nan_ok=True), 1.5]
    assert np.all(graph.splits[0] != 0) == np.all(~np.isnan(graph.y))


def test_node_table_as_told_is_part_of_the_identity(tmp_path):
    path = write(tmp_path / "g.csv", {"src": [0], "dst": [1]})
    table = write(tmp_path / "other.csv", {"node_id": [0, 1], "label": [0, 1]})
    options = DatasetOptions(node_table=table)
    assert load(path, node_table=table).graph.y.tolist() == [0, 1]
    before = dataset_identity(str(path), options)
    assert before != dataset_identity(str(path), DatasetOptions())
    write(table, {"node_id": [0, 1], "label": [1, 1]})
    assert before != dataset_identity(str(path), options)


def test_shuffled_tables_are_joined_by_names_and_ids(tmp_path):
    """What prediction on new data rests on: features of the same node and column are the same."""
    rng = np.random.default_rng(0)
    n = 30
    ids = np.array([f"p{i}" for i in range(n)])
    age, team = rng.random(n).astype(np.float32), np.array(["x", "y", "z"])[np.arange(n) % 3]
    src, dst = rng.integers(0, n, (2, 80))
    (tmp_path / "new").mkdir()
    write(tmp_path / "nodes.csv", {"id": ids, "age": age, "team": team, "label": team})
    first = load(write(tmp_path / "edges.csv", {"src": ids[src], "dst": ids[dst]})).graph
    order = rng.permutation(n)[team[rng.permutation(n)] != "z"][:20]
    kept = np.isin(src, order) & np.isin(dst, order)
    write(tmp_path / "new/nodes.csv", {"team": team[order], "more": age[order], "id": ids[order], "age": age[order]})
    again = load(write(tmp_path / "new/edges.csv", {"dst": ids[dst[kept]], "src": ids[src[kept]]})).graph
    assert again.task is None
    columns, ignored = match_columns(first.x_names, again.x_names)
    assert ignored == ("more",)
    rows = first.node_ids.rows(list(again.node_ids))
    assert np.array_equal(again.x[:, columns], first.x[rows])


GOOD = {"src": [0], "dst": [1]}


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        (
            {"sorce": [0], "dst": [1]},
            None,
            "edges.csv has columns sorce, dst; it needs.*did you mean 'source'",
        ),
        ({"src": [0]}, None, "edges.csv has columns no more; it needs one named dst or target"),
        ({"src": [0, None], "dst": [1, 1]}, None, "edges.csv has rows with an empty id"),
        (GOOD, {"id": [0, 0]}, "nodes.csv lists node '0' more than once"),
        (GOOD, {"id": [0, 2]}, "edges.csv names node '1', which nodes.csv does not list"),
        ({"src": ["a"], "dst": ["b"]}, {"id": [0, 1]}, "edges.csv names node 'a', which"),
        (GOOD, {"id": [0, 1], "split": ["train", "tset"]}, "nodes.csv has split 'tset'.*did you mean 'test'"),
        (GOOD, {"id": [0, 1], "f": [0.5, None]}, "column 'f' of nodes.csv has 1 empty fields"),
        (GOOD, {"label": [0, 1]}, "nodes.csv has columns label; it needs one named id or node"),
    ],
)
def test_mistakes_are_said_in_one_line(tmp_path, edges, nodes, message):
    if nodes is not None:
        write(tmp_path / "nodes.csv", nodes)
    with pytest.raises(DatasetError, match=message) as caught:
        load(write(tmp_path / "edges.csv", edges))
    assert "\n" not in str(caught.value)


def test_unreadable_tables_and_misplaced_options(tmp_path):
    for name in ("empty.csv", "broken.parquet"):
        (tmp_path / name).touch()
        with pytest.raises(DatasetError, match=f"{name} cannot be read as a table"):
            load(tmp_path / name)
    path = write(tmp_path / "g.csv", GOOD)
    with pytest.raises(DatasetError, match=r"node table .* does not exist"):
        load(path, node_table=tmp_path / "absent.csv")
    np.savez(tmp_path / "g.npz", edges=[[0, 1]])
    with pytest.raises(DatasetError, match="--node-table goes with a table of edges"):
        load(tmp_path / "g.npz", node_table=path)
