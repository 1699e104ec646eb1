"""Everything `gmn-prep tokenize` can be told, each setting declared and documented once."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gmn_pipeline.console.config import load_config, read_toml, setting
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.recipes import choose_recipe

TOKENS, ENCODINGS, DATASET, STORE = "Tokens", "Encodings and orderings", "Dataset", "Store"
TABLES = "Tables of your own"
"""Headings of `gmn-prep tokenize --help`."""


def default_data_root() -> Path:
    return Path(os.environ.get("GMN_DATA_ROOT") or "data/raw")


def table_options(config: "TokenizeConfig") -> dict[str, Any]:
    """What the settings say about tables, as options of a dataset."""
    from gmn_prep.datasets.entry import TABLE_OPTIONS

    return {name: getattr(config, name) for name in ("node_table", "header", *TABLE_OPTIONS)}


def available_threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class TokenizeConfig:
    """What to tokenize, how, and where to."""

    dataset: str = setting(
        help="A name from `gmn-prep datasets`, or a path to your own .npz, .pt, .csv or .parquet.",
        group=TOKENS,
    )
    m: int = setting(
        4, help="Longest walk: tokens of levels 1..m are sampled; 0 means one token per node.", group=TOKENS
    )
    M: int = setting(4, help="Walks per token.", group=TOKENS)
    s: int = setting(2, help="Tokens per level.", group=TOKENS)
    walk: Literal["uniform", "non-backtracking"] = setting(
        "uniform", help="How a walk chooses its next node.", group=TOKENS
    )
    seed: int = setting(0, help="Seed of walks, estimates and ties.", group=TOKENS)
    lap_pe: int = setting(0, help="Laplacian eigenvectors to store per node; 0 for none.", group=ENCODINGS)
    rwse: int = setting(0, help="Return probabilities to store per node, of 1..K steps; 0 for none.", group=ENCODINGS)
    rwse_mode: Literal["auto", "exact", "estimate"] = setting(
        "auto",
        help="exact, an estimate with its standard error, or whichever the graph affords.",
        group=ENCODINGS,
    )
    ordering: tuple[str, ...] = setting(
        ("degree",),
        help="Node orderings to store: degree, pagerank, k-core, eigenvector, random; separate by commas.",
        group=ENCODINGS,
    )
    directed: bool = setting(False, help="Keep edges one-way; otherwise they go both ways.", group=DATASET)
    nodes: int | None = setting(None, help="Generated datasets of one graph: its size.", group=DATASET)
    graphs: int | None = setting(None, help="Generated datasets of many graphs: how many.", group=DATASET)
    data_seed: int = setting(0, help="Seed of generated datasets, random splits and held-out links.", group=DATASET)
    task: str | None = setting(
        None,
        help="link holds out edges of a node dataset as targets. Your own data: level-kind, such as graph-regression.",
        group=DATASET,
    )
    metric: str | None = setting(
        None, help="Your own data, or --task link: metric, if not the task's default.", group=DATASET
    )
    classes: int | None = setting(
        None, help="Your own data: number of classes, if not found from the labels.", group=DATASET
    )
    node_table: Path | None = setting(
        None,
        help="Your own edge list: its table of nodes, if not beside it; or several, as 'nodes-*.csv'.",
        group=TABLES,
    )
    src: str | None = setting(None, help="Column of edge sources.", group=TABLES)
    dst: str | None = setting(None, help="Column of edge targets.", group=TABLES)
    id: str | None = setting(None, help="Column of node ids.", group=TABLES)
    label: str | None = setting(None, help="Column of labels; several with commas between.", group=TABLES)
    time: str | None = setting(
        None, help="Column to split by: the first 60% of its values train, the last 20% test.", group=TABLES
    )
    features: tuple[str, ...] = setting((), help="Columns that are features; all others unless given.", group=TABLES)
    drop: tuple[str, ...] = setting((), help="Columns to leave out.", group=TABLES)
    header: bool = setting(True, help="Tables begin with a row of names; else columns are 0, 1, 2, ...", group=TABLES)
    data_root: Path | None = setting(None, help="Raw datasets; $GMN_DATA_ROOT or data/raw unless given.", group=DATASET)
    out: Path | None = setting(None, help="Store to write; data/NAME.zarr unless given.", group=STORE)
    codec: Literal["raw", "zstd"] = setting("raw", help="raw is mapped without copying; zstd is smaller.", group=STORE)
    block_size: int | None = setting(None, help="Nodes per block; chosen from m, M, s unless given.", group=STORE)
    threads: int | None = setting(None, help="Threads; all cores unless given. Never changes a byte.", group=STORE)
    force: bool = setting(False, help="Replace a store of other content under the same name.", group=STORE)

    def __post_init__(self) -> None:
        for name in ("lap_pe", "rwse"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 0 (none) or more")
        for name in ("threads", "block_size", "nodes", "graphs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")


def read_request(file: Path | None, flags: dict[str, Any], recipe: str | None) -> TokenizeConfig:
    """The settings of `gmn-prep tokenize`: defaults < the dataset's recipe, or the one asked for < TOML < flags."""
    dataset = flags.get("dataset") or (read_toml(file).get("dataset") if file else None)
    found = choose_recipe(recipe, None if dataset is None else str(dataset))
    return load_config(TokenizeConfig, file, flags, found.tokenize if found else None)
