"""The heterophilous graphs of Platonov et al. (2023), each with its ten splits, in files of numpy arrays."""

from functools import partial
from pathlib import Path

import numpy as np

from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import Dataset
from gmn_prep.datasets.file_sizes import check_npz
from gmn_prep.datasets.public.public_dataset import public_dataset
from gmn_prep.datasets.public.raw.raw_files import RawFiles

URL = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
PARTS = {"train": TRAIN, "val": VAL, "test": TEST}
FIVE_CLASSES = Task.of("node", "multiclass", 5, "accuracy")
TWO_CLASSES = Task.of("node", "binary", 2, "roc_auc")


def _read(name: str, task: Task, folder: Path, _directed: bool) -> Graph:
    check_npz(folder / name)
    with np.load(folder / name, allow_pickle=False) as file:
        splits = sum(code * file[f"{part}_masks"].astype(np.uint8) for part, code in PARTS.items())
        return Graph.from_edges(
            file["edges"],
            len(file["node_labels"]),
            x=file["node_features"],
            y=file["node_labels"],
            splits=splits,
            task=task,
        )


def _line(name: str, nodes: int, edges: int, predicts: Task) -> Dataset:
    stem = name.replace("-", "_")
    file = f"raw/{stem}.npz"
    return public_dataset(
        name,
        partial(_read, file, predicts),
        predicts,
        size=f"{nodes:,} nodes, {edges:,} edges",
        source="ROOT/heterophilous",
        raw=RawFiles(folder=f"heterophilous/{stem}", files=(file,), url=f"{URL}/{stem}.npz"),
    )


HETEROPHILOUS = (
    _line("roman-empire", 22_662, 32_927, Task.of("node", "multiclass", 18, "accuracy")),
    _line("amazon-ratings", 24_492, 93_050, FIVE_CLASSES),
    _line("minesweeper", 10_000, 39_402, TWO_CLASSES),
    _line("tolokers", 11_758, 519_000, TWO_CLASSES),
    _line("questions", 48_921, 153_540, TWO_CLASSES),
    _line("actor", 7_600, 26_659, FIVE_CLASSES),
    _line("chameleon-filtered", 890, 8_854, FIVE_CLASSES),
    _line("squirrel-filtered", 2_223, 46_998, FIVE_CLASSES),
)
