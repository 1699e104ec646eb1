"""Tiny raw files in the true formats of the public datasets."""

import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task

EDGES = np.array([[0, 1], [1, 2], [3, 1], [3, 2]])


def minesweeper_arrays(n: int = 12, seed: int = 0) -> dict[str, np.ndarray]:
    """The arrays of a Platonov file, with a path for a graph."""
    rng = np.random.default_rng(seed)
    part = np.stack([rng.permutation(n) % 4 for _ in range(10)])
    return {
        "node_features": np.eye(7, dtype=np.float32)[rng.integers(0, 7, n)],
        "node_labels": np.arange(n) % 2,
        "edges": np.stack([np.arange(n - 1), np.arange(1, n)], axis=1),
        "train_masks": part < 2,
        "val_masks": part == 2,
        "test_masks": part == 3,
    }


def write_minesweeper(root: Path, seed: int = 0) -> Path:
    path = root / "heterophilous/minesweeper/raw/minesweeper.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **minesweeper_arrays(seed=seed))
    return path


def minesweeper_graph(seed: int = 0) -> Graph:
    """What loading that file must give."""
    arrays = minesweeper_arrays(seed=seed)
    return Graph.from_edges(
        arrays["edges"],
        12,
        x=arrays["node_features"],
        y=arrays["node_labels"],
        splits=1 * arrays["train_masks"] + 2 * arrays["val_masks"] + 3 * arrays["test_masks"],
        task=Task.of("node", "binary", 2, "roc_auc"),
    )


def write_arxiv(root: Path) -> Path:
    """ogbn-arxiv with four papers, and without ogb's release note."""
    folder = root / "ogb/ogbn_arxiv"
    tables = {
        "raw/edge": EDGES,
        "raw/node-feat": arxiv_features(),
        "raw/node-label": [[5], [39], [0], [5]],
        "raw/node_year": [[2017], [2018], [2019], [2020]],
        "raw/num-node-list": [[4]],
        "raw/num-edge-list": [[4]],
        "split/time/train": [[0], [3]],
        "split/time/valid": [[2]],
        "split/time/test": [[1]],
    }
    write_tables(folder, tables)
    return folder


def arxiv_features() -> np.ndarray:
    return np.arange(4 * 128).reshape(4, 128) / 8


def write_heterophilous(root: Path, name: str, classes: int) -> dict[str, np.ndarray]:
    """Any of Platonov's sets: they are files of the same arrays."""
    arrays = minesweeper_arrays() | {"node_labels": np.arange(12) % classes}
    stem = name.replace("-", "_")
    path = root / f"heterophilous/{stem}/raw/{stem}.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, **arrays)
    return arrays


def write_products(root: Path) -> Path:
    """ogbn-products with four products; each edge is given in one direction."""
    folder = root / "ogb/ogbn_products"
    tables = {
        "raw/edge": EDGES,
        "raw/node-feat": np.arange(400).reshape(4, 100) / 8,
        "raw/node-label": [[5], [46], [0], [5]],
        "raw/num-node-list": [[4]],
        "raw/num-edge-list": [[4]],
        "split/sales_ranking/train": [[0], [3]],
        "split/sales_ranking/valid": [[2]],
        "split/sales_ranking/test": [[1]],
    }
    write_tables(folder, tables)
    return folder


PLANETOID_TRAIN, PLANETOID_KNOWN = 3, 510
"""Nodes with a label for training, and nodes before the test nodes: the public split has 500 for validation."""


def write_planetoid(root: Path, spelling: str, classes: int, test: list[int]) -> dict[str, np.ndarray]:
    """The eight files of a Planetoid set; `test` are the test nodes' ids in the order of `tx`.

    Returns x, y and edges by node. A node between the test nodes that is not one of them has no features.
    """
    rng = np.random.default_rng(0)
    n = max(test) + 1
    x = (rng.random((n, 6)) < 0.4).astype(np.float32)
    y = rng.integers(0, classes, n)
    unused = sorted(set(range(PLANETOID_KNOWN, n)) - set(test))
    x[unused], y[unused] = 0, 0
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    neighbours: dict[int, list[int]] = {v: [v] if v == 0 else [] for v in range(n)}  # a self-loop among them
    for a, b in edges.tolist():
        neighbours[a] += [b, b]  # given twice
        neighbours[b].append(a)
    one_hot = np.eye(classes, dtype=np.int32)[y]
    known = slice(0, PLANETOID_KNOWN)
    parts = {
        "x": csr_matrix(x[:PLANETOID_TRAIN]),
        "allx": csr_matrix(x[known]),
        "tx": csr_matrix(x[test]),
        "y": one_hot[:PLANETOID_TRAIN],
        "ally": one_hot[known],
        "ty": one_hot[test],
        "graph": neighbours,
    }
    folder = root / "planetoid" / spelling / "raw"
    folder.mkdir(parents=True)
    stem = f"ind.{spelling.lower()}"
    for ending, value in parts.items():
        (folder / f"{stem}.{ending}").write_bytes(pickle.dumps(value, protocol=2))
    (folder / f"{stem}.test.index").write_text("".join(f"{v}\n" for v in test))
    return {"x": x, "y": y, "edges": edges}


def write_tables(folder: Path, tables: dict[str, Any]) -> None:
    """ogb's tables: CSV without a head, zipped."""
    for name, rows in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as file:
            file.writelines(",".join(map(str, row)) + "\n" for row in np.asarray(rows).tolist())
