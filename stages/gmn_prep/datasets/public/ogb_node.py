"""Node datasets of the Open Graph Benchmark, through ogb's own loader, with its splits. The files are CSV."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import Dataset, DatasetOptions
from gmn_prep.datasets.file_sizes import check_gzip
from gmn_prep.datasets.public.public_dataset import load_public_dataset
from gmn_prep.datasets.public.raw.raw_files import RawFiles


def load_ogb_node(name: str, options: DatasetOptions) -> Graph:
    line = next(line for line in OGB_NODE if line.name == name)
    assert line.raw is not None
    directed = options.directed and "directed" in line.takes

    def convert(folder: Path) -> Graph:
        for table in folder.rglob("*.csv.gz"):
            check_gzip(table)
        data, splits = _read(name, folder.parent)
        if "directed" in line.takes:
            return Graph.from_pyg(data, line.predicts, directed=directed).replace(splits=splits)
        # ogb has added every reverse itself: ours would only double the memory.
        graph = Graph.from_pyg(data, line.predicts, directed=True)
        return graph.replace(splits=splits, directed=False).check()

    return load_public_dataset(name, line.raw, options, convert, directed=directed)


def _read(name: str, root: Path) -> tuple[Any, Any]:
    """PyG's Data, and the split, (1, n) uint8."""
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
    return data, splits


def _raw(stem: str, split: str, *further: str) -> RawFiles:
    return RawFiles(
        folder=f"ogb/ogbn_{stem}",
        files=(
            *(f"raw/{table}.csv.gz" for table in ("edge", "node-feat", "node-label", *further)),
            *(f"raw/num-{table}-list.csv.gz" for table in ("node", "edge")),
            *(f"split/{split}/{part}.csv.gz" for part in ("train", "valid", "test")),
        ),
        url=f"http://snap.stanford.edu/ogb/data/nodeproppred/{stem}.zip",
        parts=(),
        # Without it ogb believes that its files are out of date, and asks whether to delete them.
        markers=("RELEASE_v1.txt",),
    )


OGB_NODE = (
    Dataset(
        "ogbn-arxiv",
        partial(load_ogb_node, "ogbn-arxiv"),
        Task.of("node", "multiclass", 40, "accuracy"),
        size="169,343 nodes, 1,166,243 edges",
        source="ogb, ROOT/ogb",
        takes={"directed": False},
        raw=_raw("arxiv", "time", "node_year"),
    ),
    Dataset(
        "ogbn-products",
        partial(load_ogb_node, "ogbn-products"),
        Task.of("node", "multiclass", 47, "accuracy"),
        size="2,449,029 nodes, 61,859,140 edges",
        source="ogb, ROOT/ogb",
        raw=_raw("products", "sales_ranking"),
    ),
)
