"""The heterophilous graphs of Platonov et al. (2023), through PyG's loader, each with its ten splits."""

from pathlib import Path

from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.public_dataset import load_public_dataset
from gmn_prep.datasets.raw_files import RawFiles

_TASKS = {"minesweeper": Task.of("node", "binary", 2, "roc_auc")}


def heterophilous_files(name: str) -> RawFiles:
    stem = name.replace("-", "_")
    return RawFiles(
        folder=f"heterophilous/{stem}",
        files=(f"raw/{stem}.npz",),
        url=f"https://github.com/yandex-research/heterophilous-graphs/raw/main/data/{stem}.npz",
    )


def load_heterophilous(name: str, options: DatasetOptions) -> Graph:
    def convert(root: Path) -> Graph:
        from torch_geometric.datasets import HeterophilousGraphDataset

        return Graph.from_pyg(HeterophilousGraphDataset(str(root), name)[0], _TASKS[name])

    return load_public_dataset(name, heterophilous_files(name), options, convert)
