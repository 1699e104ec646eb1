"""Cora, CiteSeer and PubMed (Yang et al. 2016), through PyG's loader, with the public split: citations of papers.

Features are words of the papers, as published: not normalised.
"""

from functools import partial
from pathlib import Path

from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import Dataset, DatasetOptions
from gmn_prep.datasets.public.public_dataset import load_public_dataset
from gmn_prep.datasets.public.raw_files import RawFiles

ENDINGS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


def load_planetoid(spelling: str, options: DatasetOptions) -> Graph:
    line = next(line for line in PLANETOID if line.name == spelling.lower())
    assert line.raw is not None

    def convert(root: Path) -> Graph:
        from torch_geometric.datasets import Planetoid

        return Graph.from_pyg(Planetoid(str(root), spelling)[0], line.predicts)

    return load_public_dataset(line.name, line.raw, options, convert)


def _line(spelling: str, nodes: int, edges: int, classes: int) -> Dataset:
    return Dataset(
        spelling.lower(),
        partial(load_planetoid, spelling),
        Task.of("node", "multiclass", classes, "accuracy"),
        size=f"{nodes:,} nodes, {edges:,} edges",
        source="PyG, ROOT/planetoid",
        counts=lambda _: (nodes, 2 * edges),
        raw=RawFiles(
            folder=f"planetoid/{spelling}",
            files=tuple(f"raw/ind.{spelling.lower()}.{ending}" for ending in ENDINGS),
            url="https://github.com/kimiyoung/planetoid/raw/master/data",
        ),
    )


PLANETOID = (
    _line("Cora", 2_708, 5_278, 7),
    _line("CiteSeer", 3_327, 4_552, 6),
    _line("PubMed", 19_717, 44_324, 3),
)
