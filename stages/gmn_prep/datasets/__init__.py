"""The datasets by name, and the user's own by path. A new one is a file here and a line in this table.

A family of public datasets that one library loads is a file with its own lines.
"""

from pathlib import Path
from typing import Any

from gmn_pipeline.errors import DatasetError, nearest
from gmn_pipeline.store.format.naming import store_stem
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import Dataset, DatasetOptions, LoadedDataset, lazy
from gmn_prep.datasets.public.gnn_benchmark import GNN_BENCHMARK
from gmn_prep.datasets.public.heterophilous import HETEROPHILOUS
from gmn_prep.datasets.public.lrgb import LRGB
from gmn_prep.datasets.public.malnet import MALNET_TINY
from gmn_prep.datasets.public.ogb_node import OGB_NODE
from gmn_prep.datasets.public.planetoid import PLANETOID
from gmn_prep.datasets.user.tables.table_path import TABLE_SUFFIXES, ending, find_in_folder, name_files
from gmn_prep.datasets.user.user_task import parse_task
from gmn_prep.datasets.wanted_task import link_metric, wants_links
from gmn_prep.tokenize_settings import TABLE_OPTIONS

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetOptions",
    "LoadedDataset",
    "dataset_identity",
    "load_dataset",
    "store_name",
]

LONGEST_NAME = 255
"""Bytes that file systems allow."""


def _generated(name: str, predicts: Task, size: str, after: str = "", **takes: int) -> Dataset:
    """A line whose generator has its name. takes: the option that sets how much is generated, and its default."""
    stem = name.replace("-", "_")
    ((option, count),) = takes.items()
    return Dataset(
        name,
        lazy(f"generated.{stem}", f"load_{stem}"),
        predicts,
        size=f"{count:,} {option}, {size}, or --{option}",
        source=f"generated, no download{after and f' ({after})'}",
        takes={**takes, "seed": 0},
    )


FOUR_COLOURS = Task.of("node", "multiclass", 4, "accuracy")
HIDDEN_NODES = Task.of("node", "binary", 2, "weighted_accuracy", class_weighted=True)
_LINES = (
    _generated(
        "minesweeper-grid",
        Task.of("node", "binary", 2, "roc_auc"),
        "39,402 edges",
        "Platonov et al. 2023",
        nodes=10_000,
    ),
    _generated("sbm-pattern", HIDDEN_NODES, "45-190 nodes each", "PATTERN, Dwivedi et al. 2020", graphs=14_000),
    _generated(
        "skip-ring",
        Task.of("graph", "multiclass", 4, "accuracy"),
        "24-48 nodes each",
        "after CSL, Murphy et al. 2019",
        graphs=2_000,
    ),
    _generated("cycle-count", Task.of("graph", "regression", 2, "mae"), "24-48 nodes each", graphs=5_000),
    _generated("ring-transfer", FOUR_COLOURS, "16 nodes each", "after Bodnar et al. 2021", graphs=500),
    _generated(
        "tree-match",
        Task.of("node", "multiclass", 8, "accuracy"),
        "15 nodes each",
        "Alon & Yahav 2021",
        graphs=4_000,
    ),
    _generated("distant-pairs", FOUR_COLOURS, "30 nodes each", graphs=2_000),
    *HETEROPHILOUS,
    *PLANETOID,
    *OGB_NODE,
    *LRGB,
    *GNN_BENCHMARK,
    MALNET_TINY,
)
DATASETS = {line.name: line for line in _LINES}


def load_dataset(name_or_path: str, options: DatasetOptions) -> LoadedDataset:
    """Load a dataset of the table, or the user's own file. Raises DatasetError in one line."""
    dataset = _find(name_or_path, options)
    if isinstance(dataset, Path):
        from gmn_prep.datasets.user.user_file import load_user_file

        return LoadedDataset(store_name(name_or_path, options), *load_user_file(dataset, options))
    graph = dataset.load(options)
    notices: list[str] = []
    if options.nodes is not None and graph.num_nodes != options.nodes:
        notices.append(f"{dataset.name} has {graph.num_nodes:,} nodes, the nearest possible size to {options.nodes:,}")
    if options.directed and not graph.directed:
        notices.append(f"{dataset.name} has no directed edges; --directed changes nothing")
    if wants_links(dataset, options):
        from gmn_prep.datasets.links import hold_out_links

        graph, more = hold_out_links(graph, options.seed, link_metric(options))
        notices += more
    return LoadedDataset(store_name(name_or_path, options), graph, tuple(notices))


def check_table(name_or_path: str, options: DatasetOptions) -> None:
    """Raise DatasetError unless it is a table of edges of the user's own."""
    path = _find(name_or_path, options)
    if not isinstance(path, Path) or ending(path) not in TABLE_SUFFIXES:
        raise DatasetError(
            f"--memory goes with a table of edges of your own ({', '.join(TABLE_SUFFIXES)}), not {name_or_path}"
        )


def dataset_identity(name_or_path: str, options: DatasetOptions) -> dict[str, Any]:
    """All that the content depends on, without loading it: options, and digests of the files it is read from.

    No path and no clock. Raw files that are not there are downloaded first, or DatasetError says where to put
    them.
    """
    dataset = _find(name_or_path, options)
    if isinstance(dataset, Path):
        from gmn_prep.datasets.user.user_file import identify_user_file

        return identify_user_file(dataset, options)
    identity: dict[str, Any] = {"dataset": dataset.name}
    for name, default in dataset.takes.items():
        value = getattr(options, name)
        identity[name] = default if value is None else value
    if dataset.raw is not None:
        root = dataset.raw.find(options.data_root)
        if root is None:
            dataset.load(options)
            root = dataset.raw.find(options.data_root)
            assert root is not None
        identity["content"] = dataset.raw.digest(root)
    if wants_links(dataset, options):
        identity |= {"task": "link", "metric": link_metric(options), "seed": options.seed}
    return identity


def store_name(name_or_path: str, options: DatasetOptions | None = None) -> str:
    """What a store of it is called: the name without ogb's prefix, or the file's stem; `-link` if links are asked."""
    options = options or DatasetOptions()
    name = _table_name(name_or_path)
    if name in DATASETS:
        links = wants_links(DATASETS[name], options)
        stem = store_stem(name)
    else:
        links = parse_task(options.task)[0] == "link"
        stem = name_files(Path(name_or_path).expanduser())
    return f"{stem}-link" if links else stem


def _table_name(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def _find(name_or_path: str, options: DatasetOptions) -> Dataset | Path:
    dataset = DATASETS.get(_table_name(name_or_path))
    if dataset is None:
        path = Path(name_or_path).expanduser()
        if len(path.name.encode()) > LONGEST_NAME:
            raise DatasetError(f"the name of the dataset has {len(path.name):,} characters; no file name is that long")
        if path.suffix or len(path.parts) > 1 or path.exists():
            return find_in_folder(path) if path.is_dir() else path
        raise DatasetError(
            f"no dataset is called '{name_or_path}'; known: {', '.join(DATASETS)}, or a path to your own file"
            f"{nearest(_table_name(name_or_path), tuple(DATASETS))}"
        )
    links = wants_links(dataset, options)
    for name in ("nodes", "graphs", "metric", "classes", "node_table", *TABLE_OPTIONS):
        if name == "metric" and links:
            continue
        if getattr(options, name) not in (None, ()) and name not in dataset.takes:
            takers = ", ".join(line.name for line in _LINES if name in line.takes) or "files of your own"
            raise DatasetError(f"--{name.replace('_', '-')} does not apply to {dataset.name}, only to {takers}")
    return dataset
