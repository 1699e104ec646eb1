"""Node datasets of the Open Graph Benchmark, through ogb's own loader, with its splits. The files are CSV."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import Dataset
from gmn_prep.datasets.file_sizes import check_gzip
from gmn_prep.datasets.public.public_dataset import public_dataset
from gmn_prep.datasets.public.raw.raw_files import RawFiles


def _convert_one_way(name: str, task: Task, folder: Path, directed: bool) -> Graph:
    """Edges are published in one direction."""
    data, splits = _read(name, folder)
    return Graph.from_pyg(data, task, directed=directed).replace(splits=splits)


def _convert_both_ways(name: str, task: Task, folder: Path, _directed: bool) -> Graph:
    """ogb has added every reverse itself: ours would only double the memory."""
    data, splits = _read(name, folder)
    return Graph.from_pyg(data, task, directed=True).replace(splits=splits, directed=False).check()


def _read(name: str, folder: Path) -> tuple[Any, Any]:
    """PyG's Data, and the split, (1, n) uint8."""
    import torch
    from ogb.nodeproppred import PygNodePropPredDataset
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    for table in folder.rglob("*.csv.gz"):
        check_gzip(table)
    # ogb 1.3.6 reads its own file back with torch.load's defaults, which since torch 2.6 refuse unknown
    # classes.
    known: list[Any] = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    with torch.serialization.safe_globals(known):
        dataset = PygNodePropPredDataset(name, root=str(folder.parent))
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


def _line(name: str, convert: Callable[..., Graph], classes: int, size: str, raw: RawFiles, **options: Any) -> Dataset:
    task = Task.of("node", "multiclass", classes, "accuracy")
    read = partial(convert, name, task)
    return public_dataset(name, read, task, size=size, source="ogb, ROOT/ogb", raw=raw, **options)


OGB_NODE = (
    _line(
        "ogbn-arxiv",
        _convert_one_way,
        40,
        "169,343 nodes, 1,166,243 edges",
        _raw("arxiv", "time", "node_year"),
        directed=True,
    ),
    _line(
        "ogbn-products",
        _convert_both_ways,
        47,
        "2,449,029 nodes, 61,859,140 edges",
        _raw("products", "sales_ranking"),
    ),
)
