"""MalNet-Tiny (Freitas et al. 2021): function call graphs of software of five types, through PyG's loader.

Its graphs have no features; as GraphGPS does, each node gets its local degree profile: its own degree, and least,
largest, mean and deviation of its neighbours' degrees.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array
from gmn_prep.datasets.entry import Dataset, DatasetOptions
from gmn_prep.datasets.public.public_dataset import load_public_dataset
from gmn_prep.datasets.public.raw_files import RawFiles

if TYPE_CHECKING:
    from gmn_prep.datasets.public.collated import Collated

TASK = Task.of("graph", "multiclass", 5, "accuracy")
SPLITS = tuple(f"raw/split_info_tiny/type/{part}.txt" for part in ("train", "val", "test"))


def list_edge_lists(folder: Path) -> list[str]:
    """The edge lists that the split files name."""
    names = [name for split in SPLITS for name in (folder / split).read_text().split()]
    return [f"raw/malnet-graphs-tiny/{name}.edgelist" for name in names]


RAW = RawFiles(
    folder="malnet-tiny",
    files=SPLITS,
    url="http://malnet.cc.gatech.edu/graph-data/malnet-graphs-tiny.tar.gz",
    listing=list_edge_lists,
    listed="raw/malnet-graphs-tiny/TYPE/FAMILY/NAME.edgelist for each name in them",
)


def load_malnet_tiny(options: DatasetOptions) -> Graph:
    def convert(root: Path) -> Graph:
        from torch_geometric.datasets import MalNetTiny

        from gmn_prep.datasets.public.collated import PARTS, collate, union_graph

        folder = str(root / RAW.folder)
        graphs = collate([("train", MalNetTiny(folder))])  # all parts, in the order of PARTS
        graphs.part = np.repeat(list(PARTS.values()), [len(MalNetTiny(folder, part)) for part in PARTS])
        drop_unlinked_nodes(graphs)
        x = degree_profile(graphs)
        return union_graph(graphs, TASK, directed=options.directed, x=x, y=graphs.fields["y"])

    return load_public_dataset("malnet-tiny", RAW, options, convert, directed=options.directed)


def drop_unlinked_nodes(graphs: "Collated") -> None:
    """Drop, in place, nodes that no edge links to another, and number the rest anew.

    Ids of an edge list have gaps, while PyG counts nodes up to the largest id: those in the gaps are no functions.
    The benchmark's published counts (1,410 nodes per graph) are without them.
    """
    start = np.repeat(graphs.node_ptr[:-1], np.diff(graphs.edge_ptr))
    ends = graphs.edges + start[:, None]
    linked = np.zeros(int(graphs.node_ptr[-1]), dtype=bool)
    linked[ends[ends[:, 0] != ends[:, 1]]] = True
    before = np.concatenate([[0], np.cumsum(linked)])  # linked nodes before each
    keep = linked[ends[:, 0]]  # all but the loops of nodes that go
    kept = np.concatenate([[0], np.cumsum(keep)])
    graphs.edges = (before[ends] - before[start][:, None])[keep]
    graphs.node_ptr = before[graphs.node_ptr]
    graphs.edge_ptr = kept[graphs.edge_ptr]


def degree_profile(graphs: "Collated") -> Array:
    """(n, 5) float32: PyG's LocalDegreeProfile of all graphs at once, along the edges as published."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.transforms import LocalDegreeProfile

    start = np.repeat(graphs.node_ptr[:-1], np.diff(graphs.edge_ptr))
    union = torch.from_numpy((graphs.edges + start[:, None]).T)
    x: Array = LocalDegreeProfile()(Data(edge_index=union, num_nodes=int(graphs.node_ptr[-1]))).x.numpy()
    return x


MALNET_TINY = Dataset(
    "malnet-tiny",
    load_malnet_tiny,
    TASK,
    size="5,000 graphs, about 1,410 nodes each",
    source="PyG, ROOT/malnet-tiny",
    takes={"directed": False},
    raw=RAW,
)
