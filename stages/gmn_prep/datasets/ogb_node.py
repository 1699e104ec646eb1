"""Node datasets of the Open Graph Benchmark, through ogb's own loader."""

from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.public_dataset import load_public_dataset
from gmn_prep.datasets.raw_files import RawFiles

OGBN_ARXIV = RawFiles(
    folder="ogb/ogbn_arxiv",
    files=(
        *(f"raw/{stem}.csv.gz" for stem in ("edge", "node-feat", "node-label", "node_year")),
        *(f"raw/num-{stem}-list.csv.gz" for stem in ("node", "edge")),
        *(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test")),
    ),
    url="http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip",
    # Without it ogb believes that its files are out of date, and asks whether to delete them.
    markers=("RELEASE_v1.txt",),
)


def load_ogbn_arxiv(options: DatasetOptions) -> Graph:
    """Citations between arXiv papers of computer science: 40 subject classes, official split by year."""

    def convert(root: Path) -> Graph:
        return _convert("ogbn-arxiv", Task.of("node", "multiclass", 40, "accuracy"), root, options.directed)

    return load_public_dataset("ogbn-arxiv", OGBN_ARXIV, options, convert, directed=options.directed)


def _convert(name: str, task: Task, root: Path, directed: bool) -> Graph:
    import torch
    from ogb.nodeproppred import PygNodePropPredDataset
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    # ogb 1.3.6 reads its own file back with torch.load's defaults, which since torch 2.6 refuse unknown
    # classes.
    known: list[Any] = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    with torch.serialization.safe_globals(known):
        dataset = PygNodePropPredDataset(name, root=str(root))
    data, parts = dataset[0], dataset.get_idx_split()
    splits = np.zeros((1, data.num_nodes), dtype=np.uint8)
    for part, code in (("train", TRAIN), ("valid", VAL), ("test", TEST)):
        splits[0, parts[part].numpy()] = code
    return Graph.from_pyg(data, task, directed=directed).replace(splits=splits)
