"""Datasets of "Benchmarking Graph Neural Networks" (Dwivedi et al. 2020), as PyG publishes them, with its splits."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.graph import Graph
from gmn_pipeline.graph.tensors import to_array
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import Dataset
from gmn_prep.datasets.public.public_dataset import public_dataset
from gmn_prep.datasets.public.raw.plain_tensors import load_torch
from gmn_prep.datasets.public.raw.raw_files import RawFiles


def _read(file: str, task: Task, folder: Path, directed: bool) -> Graph:
    """Superpixels: each is linked to its eight nearest, colour and place are its features, nearness the edge's."""
    from gmn_prep.datasets.public.raw.collated import PARTS, collate, union_graph

    content = load_torch(folder / file)  # by part, a list of dicts of tensors
    items = [[{key: to_array(value) for key, value in item.items()} for item in part] for part in content]
    graphs = collate(zip(PARTS, items, strict=True))
    x = graphs.fields["x"]
    if "pos" in graphs.fields:
        x = np.concatenate([x, graphs.fields["pos"]], axis=1)
    return union_graph(graphs, task, directed=directed, x=x, y=graphs.fields["y"])


def _line(name: str, size: str, predicts: Task, **options: Any) -> Dataset:
    stem = name.upper()
    file = f"raw/{stem}_v2.pt"
    return public_dataset(
        name,
        partial(_read, file, predicts),
        predicts,
        size=size,
        source="ROOT/gnn-benchmark",
        raw=RawFiles(
            folder=f"gnn-benchmark/{stem}",
            files=(file,),
            url=f"https://data.pyg.org/datasets/benchmarking-gnns/{stem}_v2.zip",
        ),
        **options,
    )


GNN_BENCHMARK = (
    _line(
        "mnist",
        "70,000 graphs, 4,939,668 nodes",
        Task.of("graph", "multiclass", 10, "accuracy"),
        directed=True,
    ),
    _line(
        "cifar10",
        "60,000 graphs, 7,058,005 nodes",
        Task.of("graph", "multiclass", 10, "accuracy"),
        directed=True,
    ),
    _line(
        "pattern",
        "14,000 graphs, 1,664,491 nodes",
        Task.of("node", "binary", 2, "weighted_accuracy", class_weighted=True),
    ),
)
