"""The public datasets of one graph, on tiny files in their raw formats."""

import copyreg
import pickle
from collections import defaultdict

import numpy as np
import pytest
from numpy._core.multiarray import _reconstruct
from scipy.sparse import csr_matrix

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets import DATASETS, DatasetOptions, load_dataset
from gmn_prep.datasets.public import public_dataset
from tests.prep.datasets.public.raw_folders import assert_same
from tests.prep.datasets.public.raw_samples import (
    EDGES,
    PLANETOID_KNOWN,
    PLANETOID_TRAIN,
    write_heterophilous,
    write_planetoid,
    write_products,
)

PUBLIC = [name for name, line in DATASETS.items() if line.raw is not None]


def load(name, root):
    return load_dataset(name, DatasetOptions(data_root=root)).graph.check()


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("roman-empire", Task.of("node", "multiclass", 18, "accuracy")),
        ("amazon-ratings", Task.of("node", "multiclass", 5, "accuracy")),
        ("minesweeper", Task.of("node", "binary", 2, "roc_auc")),
        ("tolokers", Task.of("node", "binary", 2, "roc_auc")),
        ("questions", Task.of("node", "binary", 2, "roc_auc")),
        ("actor", Task.of("node", "multiclass", 5, "accuracy")),
        ("chameleon-filtered", Task.of("node", "multiclass", 5, "accuracy")),
        ("squirrel-filtered", Task.of("node", "multiclass", 5, "accuracy")),
    ],
)
def test_heterophilous(root, name, task):
    arrays = write_heterophilous(root, name, task.classes)
    wanted = Graph.from_edges(
        arrays["edges"],
        12,
        x=arrays["node_features"],
        y=arrays["node_labels"],
        splits=1 * arrays["train_masks"] + 2 * arrays["val_masks"] + 3 * arrays["test_masks"],
        task=task,
    )
    assert_same(load(name, root), wanted)


@pytest.mark.parametrize(("spelling", "classes"), [("Cora", 7), ("CiteSeer", 6), ("PubMed", 3)])
def test_planetoid(root, spelling, classes):
    test = [PLANETOID_KNOWN + v for v in (2, 0, 3, 1)]
    if spelling == "CiteSeer":
        test[2] += 1  # its test nodes have a gap
    arrays = write_planetoid(root, spelling, classes, test)
    graph = load(spelling.lower(), root)
    splits = np.zeros(len(arrays["x"]), dtype=np.uint8)
    splits[:PLANETOID_TRAIN] = 1
    splits[PLANETOID_TRAIN : PLANETOID_TRAIN + 500] = 2
    splits[test] = 3
    wanted = Graph.from_edges(
        arrays["edges"],
        x=arrays["x"],
        y=arrays["y"],
        splits=splits,
        task=Task.of("node", "multiclass", classes, "accuracy"),
    )
    assert_same(graph, wanted)


class Python2Array:
    """An array as Python 2 pickled it: its bytes are text."""

    def __init__(self, array):
        self.array = array

    def __reduce__(self):
        state = (1, self.array.shape, self.array.dtype, False, self.array.tobytes().decode("latin1"))
        return _reconstruct, (np.ndarray, (0,), b"b"), state


class Python2Rows:
    """A sparse matrix as Python 2 pickled it."""

    def __init__(self, matrix):
        parts = {name: Python2Array(getattr(matrix, name)) for name in ("data", "indices", "indptr")}
        self.state = parts | {"maxprint": 50, "_shape": matrix.shape}

    def __reduce__(self):
        return copyreg._reconstructor, (csr_matrix, object, None), self.state


@pytest.mark.parametrize("protocol", [0, 2])
def test_planetoid_as_python_2_wrote_it(root, protocol):
    write_planetoid(root, "Cora", 7, [PLANETOID_KNOWN, PLANETOID_KNOWN + 1])
    wanted = load("cora", root)
    folder = root / "planetoid/Cora/raw"
    for ending in ("tx", "allx", "ty", "ally", "y", "graph"):
        path = folder / f"ind.cora.{ending}"
        value = pickle.loads(path.read_bytes())
        if ending == "graph":
            value = defaultdict(list, value)
        else:
            value = (Python2Rows if ending.endswith("x") else Python2Array)(value)
        content = pickle.dumps(value, protocol)
        path.write_bytes(
            content.replace(b"scipy.sparse._csr", b"scipy.sparse.csr").replace(b"numpy._core", b"numpy.core")
        )
    assert_same(load("cora", root), wanted)


def test_ogbn_products(root):
    write_products(root)
    graph = load("ogbn-products", root)
    wanted = Graph.from_edges(
        EDGES,
        x=np.arange(400).reshape(4, 100) / 8,
        y=[5, 46, 0, 5],
        splits=[1, 3, 2, 1],
        task=Task.of("node", "multiclass", 47, "accuracy"),
    )
    assert_same(graph, wanted)


@pytest.mark.parametrize("name", PUBLIC)
def test_missing_files_are_named(root, name, monkeypatch):
    monkeypatch.setattr(public_dataset, "unreachable", lambda _: "no network")
    with pytest.raises(DatasetError) as caught:
        load(name, root)
    raw = DATASETS[name].raw
    message = str(caught.value)
    assert message.startswith(f"{name} needs files that are not there, and downloading {raw.url} failed (no network)")
    assert f"put {', '.join(raw.files)}" in message
    assert f"into {root / raw.folder}" in message
    assert "\n" not in message
    assert list(root.iterdir()) == []
