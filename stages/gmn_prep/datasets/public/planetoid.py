"""Cora, CiteSeer and PubMed (Yang et al. 2016) with the public split: citations of papers.

Features are words of the papers, as published: not normalised. The files are pickles; `plain_pickle` reads them.
"""

from functools import partial
from pathlib import Path

import numpy as np

from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import Dataset
from gmn_prep.datasets.public.public_dataset import public_dataset
from gmn_prep.datasets.public.raw.plain_pickle import read_plain_pickle
from gmn_prep.datasets.public.raw.raw_files import RawFiles

ENDINGS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
VALIDATION = 500
"""Nodes for validation: those after the ones for training."""


def _read(name: str, task: Task, folder: Path, _directed: bool) -> Graph:
    """`allx` and `ally` are the first nodes; `tx` and `ty` are those that test.index names, in its order."""
    stem = f"raw/ind.{name}"
    tx, allx, y, ty, ally, links = (
        read_plain_pickle(folder / f"{stem}.{ending}") for ending in ("tx", "allx", "y", "ty", "ally", "graph")
    )
    test = np.array((folder / f"{stem}.test.index").read_text().split(), dtype=np.int64)
    if test.size != len(tx) or test.min(initial=0) < 0 or test.max(initial=-1) >= len(allx) + 10 * len(tx):
        raise ValueError(f"test.index names {test.size:,} nodes up to {test.max(initial=-1):,}")
    n = max(len(allx), int(test.max(initial=-1)) + 1)  # CiteSeer's test ids have gaps: nodes without features
    x, one_hot = (np.zeros((n, part.shape[1]), dtype=np.float32) for part in (allx, ally))
    x[: len(allx)], one_hot[: len(ally)] = allx, ally
    # The published order: row i of `tx` is the node that comes i-th in test.index.
    x[test], one_hot[test] = tx, ty
    splits = np.zeros(n, dtype=np.uint8)
    splits[: len(y)] = TRAIN
    splits[len(y) : len(y) + VALIDATION] = VAL
    splits[test] = TEST
    sources = np.repeat(list(links), [len(ends) for ends in links.values()])
    targets = np.array([end for ends in links.values() for end in ends], dtype=np.int64)
    edges = np.stack([sources, targets], axis=1)
    return Graph.from_edges(edges, n, x=x, y=one_hot.argmax(axis=1), splits=splits, task=task)


def _line(spelling: str, nodes: int, edges: int, classes: int) -> Dataset:
    name = spelling.lower()
    names = tuple(f"ind.{name}.{ending}" for ending in ENDINGS)
    task = Task.of("node", "multiclass", classes, "accuracy")
    return public_dataset(
        name,
        partial(_read, name, task),
        task,
        size=f"{nodes:,} nodes, {edges:,} edges",
        source="ROOT/planetoid",
        raw=RawFiles(
            folder=f"planetoid/{spelling}",
            files=tuple(f"raw/{file}" for file in names),
            url=URL,
            parts=tuple(f"{URL}/{file}" for file in names),
        ),
    )


PLANETOID = (
    _line("Cora", 2_708, 5_278, 7),
    _line("CiteSeer", 3_327, 4_552, 6),
    _line("PubMed", 19_717, 44_324, 3),
)
