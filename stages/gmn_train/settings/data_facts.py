"""What the rule of defaults looks at, measured on a store. No torch, no numba: it takes milliseconds.

Labels of validation and test items are never read.
"""

from dataclasses import dataclass

import numpy as np

from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.graph import TRAIN
from gmn_pipeline.store.files.array_files import REMEDY, open_array
from gmn_pipeline.store.files.storage import Storage
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.store.format.schema import graph_specs
from gmn_pipeline.types import Array

MOST_SLOTS = 2_000_000
"""Homophily is measured on the first edges, at most so many."""
FEWEST_EDGES = 30
"""Edges between training nodes below which homophily is unknown."""


@dataclass(frozen=True)
class DataFacts:
    """See the module."""

    nodes: int
    many: bool
    """Whether there are many graphs."""
    item: str
    """Of the task: node, graph or link."""
    train: int
    """Training items."""
    columns: int
    """Columns of numbers among the features; 0 where they are categories or missing."""
    edge_features: bool
    bare: bool = False
    """Whether nodes have no features at all."""
    levels: int = 1
    """Stored levels of tokens."""
    repeats: int = 1
    """Stored tokens per level."""
    homophily: float | None = None
    """How much likelier an edge between training nodes joins equal classes than chance: 1 always, 0 chance, below 0
    less. None for other tasks than classes of nodes, or where too few edges have both labels."""


def measure_facts(storage: Storage, manifest: Manifest, split: int) -> DataFacts:
    """The facts of a store at one of its splits. Raises StoreCorruptError."""
    graph, task, specs = manifest.graph, manifest.task, graph_specs(manifest)

    def read(name: str) -> Array:
        return open_array(storage, f"graph/{name}", specs[name], manifest.codec).values

    train = np.flatnonzero(read("splits")[split] == TRAIN) if split < graph.splits else np.arange(graph.items)
    item, homophily = ("node" if task is None else task.item), None
    if task is not None and item == "node" and task.kind in ("multiclass", "binary") and graph.labels:
        labels = read("y")
        if train.size and not -1 <= labels[train].min() <= labels[train].max() < task.classes:
            raise StoreCorruptError(f"{storage}/graph: labels outside the {task.classes} classes; {REMEDY}")
        try:
            homophily = measure_homophily(read("indptr"), read("indices"), labels, train)
        except IndexError:
            raise StoreCorruptError(f"{storage}/graph: edges to nodes that are not there; {REMEDY}") from None
    columns = 0 if graph.x is None or graph.x.categories is not None else graph.x.columns
    return DataFacts(
        nodes=graph.nodes,
        many=graph.many,
        item=item,
        train=len(train),
        columns=columns,
        edge_features=graph.edge_attr is not None,
        bare=graph.x is None,
        levels=manifest.tokens.m,
        repeats=manifest.tokens.s,
        homophily=homophily,
    )


def measure_homophily(indptr: Array, indices: Array, y: Array, train: Array) -> float | None:
    """Adjusted homophily of the edges between training nodes (Platonov et al. 2023).

    Raises IndexError where an edge leads to no node.
    """
    count = min(len(indices), MOST_SLOTS)
    sources = np.searchsorted(indptr, np.arange(count), side="right") - 1
    known = np.zeros(len(y), bool)
    known[train] = y[train] >= 0
    targets = indices[:count]
    both = known[sources] & known[targets]
    if both.sum() < FEWEST_EDGES:
        return None
    ends = y[sources[both]], y[targets[both]]
    share = np.bincount(np.concatenate(ends)) / (2 * both.sum())
    chance = float((share**2).sum())
    return None if chance == 1 else (float((ends[0] == ends[1]).mean()) - chance) / (1 - chance)
