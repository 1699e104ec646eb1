"""MalNet-Tiny (Freitas et al. 2021): function call graphs of software of five types, as edge lists.

Its graphs have no features; as GraphGPS does, each node gets its local degree profile: its own degree, and least,
largest, mean and deviation of its neighbours' degrees.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array
from gmn_prep.datasets.public.public_dataset import public_dataset
from gmn_prep.datasets.public.raw.raw_files import RawFiles

if TYPE_CHECKING:
    from gmn_prep.datasets.public.raw.collated import Collated

TASK = Task.of("graph", "multiclass", 5, "accuracy")
SITE = "http://malnet.cc.gatech.edu"
HEAD = 5
"""Lines of comment before the edges."""
MOST_NODES = 1 << 24
"""Ids beyond this are no numbers of functions; the largest published graph has 5,000 nodes."""
NAME = re.compile(r"\w[\w.-]{0,99}(/\w[\w.-]{0,99}){2}", re.ASCII)
SPLITS = tuple(f"raw/split_info_tiny/type/{part}.txt" for part in ("train", "val", "test"))


def list_edge_lists(folder: Path) -> list[str]:
    """The edge lists that the split files name."""
    return [f"raw/malnet-graphs-tiny/{name}.edgelist" for split in SPLITS for name in read_names(folder / split)]


def read_names(file: Path) -> list[str]:
    """Names of graphs, as TYPE/FAMILY/NAME. Raises DatasetError for a file that holds anything else."""
    names = file.read_bytes().decode(errors="replace").split()
    odd = next((name for name in names if not NAME.fullmatch(name)), None)
    if odd is not None:
        raise DatasetError(f"malnet-tiny: {file.name} lists {odd[:40]!r}, no TYPE/FAMILY/NAME; replace it")
    return names


RAW = RawFiles(
    folder="malnet-tiny",
    files=SPLITS,
    url=f"{SITE}/graph-data/malnet-graphs-tiny.tar.gz",
    parts=(f"{SITE}/split-info/split_info_tiny.zip", f"{SITE}/graph-data/malnet-graphs-tiny.tar.gz"),
    listing=list_edge_lists,
    listed="raw/malnet-graphs-tiny/TYPE/FAMILY/NAME.edgelist for each name in them",
)


def _convert(folder: Path, directed: bool) -> Graph:
    from gmn_prep.datasets.public.raw.collated import collate, union_graph

    graphs = collate(_read(folder))
    drop_unlinked_nodes(graphs)
    return union_graph(graphs, TASK, directed=directed, x=degree_profile(graphs), y=graphs.fields["y"])


def _read(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The graphs of each part; types are numbered as they first come."""
    types: dict[str, int] = {}
    for split in SPLITS:
        items = []
        for name in read_names(folder / split):
            text = (folder / f"raw/malnet-graphs-tiny/{name}.edgelist").read_text()
            edges = np.array(text.split("\n", HEAD)[HEAD].split(), dtype=np.int64).reshape(-1, 2)
            label = types.setdefault(name.split("/")[0], len(types))
            if edges.size and not 0 <= edges.min() <= edges.max() < MOST_NODES:
                raise ValueError(f"{name} names nodes {edges.min()}..{edges.max()}")
            nodes = int(edges.max(initial=-1)) + 1
            items.append({"edge_index": edges.T, "y": np.array([label]), "num_nodes": nodes})
        yield Path(split).stem, items


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


MALNET_TINY = public_dataset(
    "malnet-tiny",
    _convert,
    TASK,
    size="5,000 graphs, about 1,410 nodes each",
    source="ROOT/malnet-tiny",
    raw=RAW,
    directed=True,
)
