"""Tiny raw files in the true formats of the public datasets."""

import gzip
from pathlib import Path

import numpy as np

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
    for name, rows in tables.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as file:
            file.writelines(",".join(map(str, row)) + "\n" for row in np.asarray(rows).tolist())
    return folder


def arxiv_features() -> np.ndarray:
    return np.arange(4 * 128).reshape(4, 128) / 8
