"""Every setting of `gmn-prep tokenize`, declared and documented once."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gmn_pipeline.console.config import Layer, load_config, read_toml, setting
from gmn_pipeline.console.machine import MOST_THREADS
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.place import StorePlace
from gmn_pipeline.recipes import choose_recipe
from gmn_pipeline.store.format.words import Codec, Walk
from gmn_prep.orderings import ORDERINGS

TOKENS, ENCODINGS, DATASET, STORE = "Tokens", "Encodings and orderings", "Dataset", "Store"
TABLES = "Tables of your own"
"""Headings of `gmn-prep tokenize --help`."""
LEAST_MEMORY, MOST_MEMORY = 0.75, 1e6
"""GB: what the interpreter, compiled kernels and a sort take at least."""
TABLE_OPTIONS = ("src", "dst", "id", "label", "time", "features", "drop")
"""Options about the columns of the user's tables."""


def default_data_root() -> Path:
    return Path(os.environ.get("GMN_DATA_ROOT") or "data/raw")


def table_options(config: "TokenizeConfig") -> dict[str, Any]:
    """What the settings say about tables, as options of a dataset."""
    return {name: getattr(config, name) for name in ("node_table", "header", *TABLE_OPTIONS)}


@dataclass(frozen=True)
class TokenizeConfig:
    """What to tokenize, how, and where to."""

    dataset: str = setting(
        help="A name from `gmn-prep datasets`, or your own .csv, .parquet, .npz or .pt file.",
        group=TOKENS,
    )
    m: int = setting(2, help="Longest walk: tokens of levels 1 to m are sampled. 0: one token per node.", group=TOKENS)
    M: int = setting(8, help="Walks per token.", group=TOKENS)
    s: int = setting(4, help="Tokens per level. By default, training draws one of them for each epoch.", group=TOKENS)
    walk: Walk = setting("uniform", help="How a walk chooses its next node.", group=TOKENS)
    seed: int = setting(0, help="Seed of walks, estimates and ties.", group=TOKENS)
    lap_pe: int = setting(0, help="Laplacian eigenvectors to store per node. 0: none.", group=ENCODINGS)
    rwse: int = setting(
        0, help="Return probabilities of random walks to store per node, for 1 to K steps. 0: none.", group=ENCODINGS
    )
    rwse_mode: Literal["auto", "exact", "estimate"] = setting(
        "auto",
        help="How to compute them: exact, estimate (with a standard error), or auto, by the size of the graph.",
        group=ENCODINGS,
    )
    encoding: tuple[str, ...] = setting(
        (), help="Further encodings as NAME=K, with K columns each, separated by commas.", group=ENCODINGS
    )
    ordering: tuple[str, ...] = setting(
        ("degree",),
        help=f"Node orderings to store: {', '.join(ORDERINGS)}; separated by commas.",
        group=ENCODINGS,
    )
    directed: bool = setting(False, help="Keep the direction of edges. Default: edges go both ways.", group=DATASET)
    nodes: int | None = setting(None, help="Number of nodes (generated datasets of one graph).", group=DATASET)
    graphs: int | None = setting(None, help="Number of graphs (generated datasets of many graphs).", group=DATASET)
    data_seed: int = setting(0, help="Seed of generated datasets, random splits and held-out links.", group=DATASET)
    task: str | None = setting(
        None,
        help="`link` predicts held-out edges. Your own data: for example graph-regression. "
        "Default: inferred from the labels.",
        group=DATASET,
    )
    metric: str | None = setting(
        None, help="Metric (your own data, or --task link). Default: the task's.", group=DATASET
    )
    classes: int | None = setting(
        None, help="Number of classes (your own data). Default: inferred from the labels.", group=DATASET
    )
    node_table: Path | None = setting(
        None,
        help="Table of nodes, or several, as 'nodes-*.csv'. Default: the one beside the table of edges.",
        group=TABLES,
    )
    src: str | None = setting(None, help="Column of edge sources. Default: src, source, from or u.", group=TABLES)
    dst: str | None = setting(None, help="Column of edge targets. Default: dst, target, to or v.", group=TABLES)
    id: str | None = setting(None, help="Column of node ids. Default: id, node or node_id.", group=TABLES)
    label: str | None = setting(
        None,
        help="Column of labels, or several, separated by commas. Default: label, y, target or class.",
        group=TABLES,
    )
    time: str | None = setting(
        None, help="Column of times to split by: the first 60% train, the last 20% test.", group=TABLES
    )
    features: tuple[str, ...] = setting((), help="Columns that are features. Default: all others.", group=TABLES)
    drop: tuple[str, ...] = setting((), help="Columns to ignore.", group=TABLES)
    header: bool = setting(
        True,
        help="The first row of tables has the names of columns. Without it, columns are 0, 1, 2, ...",
        group=TABLES,
    )
    data_root: Path | None = setting(
        None, help="Folder of raw datasets. Default: $GMN_DATA_ROOT, or data/raw.", group=DATASET
    )
    out: StorePlace | None = setting(
        None, help="Store to write: a path, or s3://BUCKET/NAME.zarr. Default: data/NAME.zarr.", group=STORE
    )
    codec: Codec = setting("raw", help="raw can be mapped without copying; zstd is smaller.", group=STORE)
    block_size: int | None = setting(None, help="Nodes per block. Default: chosen from m, M and s.", group=STORE)
    threads: int | None = setting(None, help="Threads. Default: all cores. Never changes a byte.", group=STORE)
    memory: float | None = setting(
        None,
        help="Target memory in GB. Sorts the edge table on disk and maps the graph. Default: the graph is held in "
        "memory. Never changes a byte.",
        group=STORE,
    )
    dask: str | None = setting(
        None,
        help="Dask scheduler to work on, as tcp://HOST:8786, or `local` for processes of this machine. Never changes "
        "a byte.",
        group=STORE,
    )
    force: bool = setting(False, help="Write the store again and replace the existing one.", group=STORE)

    def __post_init__(self) -> None:
        for name in ("lap_pe", "rwse"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 0 (none) or more")
        for name in ("threads", "block_size", "nodes", "graphs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
        if self.memory is not None and not LEAST_MEMORY <= self.memory <= MOST_MEMORY:
            raise ConfigError(f"memory is {self.memory:g} GB; it must lie in {LEAST_MEMORY:g}..{MOST_MEMORY:g}")
        if self.memory is not None and self.codec != "raw":
            raise ConfigError("--memory writes arrays piece by piece, as --codec raw; leave one out")
        if (self.threads or 0) > MOST_THREADS:
            raise ConfigError(
                f"threads is {self.threads:,}; at most {MOST_THREADS:,} are allowed; leave it out to use all cores"
            )


def read_request(file: Path | None, flags: dict[str, Any], recipe: str | None) -> TokenizeConfig:
    """The settings of `gmn-prep tokenize`: defaults < the dataset's recipe, or the one asked for < TOML < flags."""
    table = read_toml(file) if file else {}
    dataset = flags.get("dataset") or table.get("dataset")
    chosen = choose_recipe(recipe, None if dataset is None else str(dataset))
    layers = [Layer(f"recipe {chosen.name}", chosen.tokenize)] if chosen else []
    return load_config(TokenizeConfig, *layers, Layer(str(file), table), Layer("the command line", flags))
