"""Tokenizing within a memory limit (`--memory`): how the memory is shared out, and what lies on disk instead."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from gmn_pipeline.disk.atomic_file import remove
from gmn_pipeline.disk.lock import release_lock
from gmn_pipeline.disk.resident_pages import bounded_pages
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.store.writing.writer import lock_store
from gmn_prep.datasets.entry import Scratch
from gmn_prep.orderings import ORDERINGS
from gmn_prep.plan import Plan

if TYPE_CHECKING:
    from gmn_pipeline.graph import Graph
    from gmn_pipeline.store.format.manifest import Manifest
    from gmn_prep.estimate import StoreCost
    from gmn_prep.tokens.sweep import SweepTokenizer
    from gmn_prep.tokens.tokenizer import Tokenizer

PROCESS_BYTES = 350 << 20
"""Interpreter, compiled kernels, DuckDB's code."""
BYTES_PER_NODE = 18
"""The most that is held of every node at once: while an ordering is made."""


@dataclass(frozen=True)
class MemoryBudget:
    """Bytes of memory for each use."""

    total: int

    @property
    def sort(self) -> int:
        """DuckDB's sort."""
        return max(128 << 20, (self.total - PROCESS_BYTES) // 2)

    @property
    def span(self) -> int:
        """Nodes whose walks are taken together, when the sort is over."""
        return self.sort

    @property
    def pages(self) -> int:
        """Pages of mapped files."""
        return max(64 << 20, (self.total - PROCESS_BYTES) // 4)


def budget_of(plan: Plan) -> MemoryBudget:
    assert plan.config.memory is not None
    return MemoryBudget(int(plan.config.memory * 1e9))


def check_possible(plan: Plan) -> None:
    """Raise ConfigError for what holds the whole graph in memory."""
    unbounded = [*plan.encodings, *(name for name in plan.orderings if not ORDERINGS[name].bounded)]
    if unbounded:
        raise ConfigError(
            f"--memory cannot bound {', '.join(unbounded)}, which need the graph in memory; leave them out, or --memory"
        )


def check_enough(plan: Plan, nodes: int) -> None:
    """ConfigError where the memory cannot suffice for so many nodes."""
    needed = PROCESS_BYTES + BYTES_PER_NODE * nodes
    if budget_of(plan).total < needed:
        raise ConfigError(
            f"--memory {plan.config.memory:g} is too little for {nodes:,} nodes; give at least {needed / 1e9:.1f} GB"
        )


@contextmanager
def on_disk(plan: Plan) -> Iterator[Plan]:
    """The plan with a folder beside the store to build its graph in; pages of mapped files are given back."""
    check_possible(plan)
    assert isinstance(plan.out, Path), "refused before"
    folder, budget = plan.out.with_name(f"{plan.out.name}.building"), budget_of(plan)
    lock = lock_store(folder)
    try:
        remove(folder)
        folder.mkdir()
        with bounded_pages(plan.out.parent, budget.pages):
            scratch = Scratch(folder, budget.sort, plan.threads)
            yield replace(plan, options=replace(plan.options, scratch=scratch))
    finally:
        remove(folder)
        release_lock(lock)


def disk_tokenizer(graph: "Graph", plan: Plan) -> "Tokenizer":
    """A tokenizer whose linked pairs lie on disk. Raises ConfigError where the memory cannot suffice."""
    from gmn_pipeline.graph.pairs import linked_pairs
    from gmn_prep.tokens.tokenizer import Tokenizer

    check_enough(plan, graph.num_nodes)
    assert plan.options.scratch is not None
    folder: Path = plan.options.scratch.folder

    def make(size: int, dtype: Any) -> Any:
        name = folder / f"pairs-{len(list(folder.glob('pairs-*')))}.npy"
        return np.lib.format.open_memmap(name, "w+", dtype, (size,)) if size else np.empty(0, dtype)

    return Tokenizer(graph, plan.tokens, linked_pairs(graph, with_slots=False, make=make))


def bounded_tokenizer(tokenizer: "Tokenizer", graph: "Graph", plan: Plan) -> "Tokenizer | SweepTokenizer":
    """The tokenizer on the store's own graph; it reads in order where graph and pairs exceed the pages allowed."""
    from gmn_prep.estimate import graph_bytes
    from gmn_prep.tokens.sweep import SweepTokenizer

    mapped, budget = replace(tokenizer, graph=graph), budget_of(plan)
    return mapped if graph_bytes(graph) <= budget.pages else SweepTokenizer(mapped, budget.span, plan.threads)


SORT_SECONDS, SPILL_BYTES = 3.6e-7, 19
"""Per slot: sorting and pairs on one core (0.36 µs measured), and what the sort leaves on disk meanwhile (18.5)."""
TOKEN_SECONDS = 4.8e-7
"""Per step of a walk, with its share of token and writing, on one core (10.0 µs for 21 of them measured at 4/2/1)."""
SPAN_SHARE = 0.6
"""Of the bytes that a span's node takes at most, those it does take where walks meet hubs (443 of 742 measured)."""


def estimate_large(plan: Plan, *, dry_run: bool) -> "tuple[Manifest, StoreCost]":
    """What `--memory` will need, from the sizes of the table alone: one pass over it, nothing is built.

    A dry run refuses what the run would refuse later, which takes a second pass where no table lists the nodes.
    """
    from gmn_pipeline.graph import id_dtype
    from gmn_pipeline.store.format.blocks import default_block_size
    from gmn_pipeline.store.format.manifest import GraphFacts, Manifest
    from gmn_prep.datasets import check_table
    from gmn_prep.datasets.user.tables.edge_list_file import find_node_table
    from gmn_prep.datasets.user.tables.edge_query import EdgeQuery
    from gmn_prep.datasets.user.tables.node_stream import NodeStream
    from gmn_prep.datasets.user.tables.sorted_edges import check_options
    from gmn_prep.estimate import DISK_BYTES_PER_SECOND, StoreCost
    from gmn_prep.tokens.sweep import span_node_bytes

    check_possible(plan)
    check_table(plan.config.dataset, plan.options)
    check_options(plan.options)
    path, t, budget = Path(plan.config.dataset).expanduser(), plan.tokens, budget_of(plan)
    place = find_node_table(path, plan.options)
    nodes = None if place is None else NodeStream(place, plan.options, [])
    with TemporaryDirectory(prefix="gmn-prep-") as folder:
        scratch = Scratch(Path(folder), budget.sort, plan.threads)
        with EdgeQuery(path, plan.options, scratch, [], nodes.features if nodes else None) as query:
            facts = query.facts()
            if dry_run and nodes is None:
                query.refuse_names(facts.most)
    check_enough(plan, facts.most + 1)
    n, slots = facts.most + 1, 2 * (facts.rows - facts.loops)
    size = id_dtype(n).itemsize
    csr, pairs = 8 * n + size * slots, 8 * n + size * slots // 2
    features = 4 * n * nodes.count_features() if nodes else 0
    steps = t.walk_entries
    per_node = (size + 3) * (steps + t.sequence_length) + t.sequence_length * (8 + 2 * t.M)
    store = csr + features + n * (per_node + (size + 4) * len(plan.orderings))
    graph = GraphFacts(
        nodes=n, slots=slots, edges=slots // 2, graphs=1, many=False, items=n, splits=0, directed=False, simple=True,
        x=None, edge_attr=None, labels=False, pairs=False, fingerprint="",
    )  # fmt: skip
    block_size = plan.config.block_size or default_block_size(t)
    manifest = Manifest(plan.identity, graph, None, t, {}, plan.orderings, "raw", block_size, -(-n // block_size))
    seconds = (SORT_SECONDS * slots + TOKEN_SECONDS * n * (1 + steps)) / plan.threads
    if csr + pairs > budget.pages:  # every span reads the graph once for each step but the first, and the pairs once
        spans = 1 + int(n * SPAN_SHARE * span_node_bytes(t, size, slots / 2 / n) / budget.span)
        seconds += spans * (max(t.m - 1, 0) * csr + pairs) / DISK_BYTES_PER_SECOND
    beside = csr + features + max(SPILL_BYTES * slots, pairs)
    return manifest, StoreCost(store, budget.total, seconds, beside)
