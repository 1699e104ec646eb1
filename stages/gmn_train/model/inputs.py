"""What a model takes: `ModelInputs`, and the functions that build it from a view of a token store.

Rows: the B nodes asked for come first, then other nodes of their tokens (only in a batch of a larger graph), U in all.
Node layers run on the first S rows: all of them, or in a batch the B nodes alone. For whole graphs B = S = U.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.errors import ModelError
from gmn_pipeline.graph import Graph
from gmn_pipeline.store.settings import TokenSettings
from gmn_pipeline.store.view import Part, TokenBatch, TokenView
from gmn_pipeline.types import Array, FloatArray, IntArray
from gmn_train.model.branches import Neighbourhood
from gmn_train.model.config import ModelConfig
from gmn_train.model.draws import draw_repeats, draw_signs, draw_ties
from gmn_train.model.encoders import token_parts
from gmn_train.model.node_layer import NodeOrder
from gmn_train.model.scan.checks import check_finite
from gmn_train.model.token_chunks import LazyChunks, TokenChunk, move


@dataclass(frozen=True)
class InputFacts:
    """The widths a model is made for."""

    x_columns: int
    x_categories: tuple[int, ...] | None
    extra_columns: int
    """Columns of positional encodings and degree."""
    edge_columns: int
    edge_categories: tuple[int, ...] | None
    tokens: TokenSettings
    level: str
    """node, graph or link."""
    outputs: int


@dataclass(frozen=True)
class ModelInputs:
    """Tensors of one forward pass. See the module for B, S and U."""

    settings: TokenSettings
    node_ids: Tensor
    """(U,) int64 ids in the store's graph."""
    targets: int
    """B."""
    x: Tensor | None
    """(U, F) float32 features, or int64 categories."""
    encodings: Tensor | None
    """(U, P) float32: Laplacian eigenvectors, then return probabilities."""
    log_degree: Tensor | None
    """(U, 1) float32."""
    near: Neighbourhood
    """The E edges among the first S rows."""
    edge_attr: Tensor | None
    """(E + others, Fe): those of `near` first, then edges that only tokens have."""
    order: NodeOrder
    """Of the first S rows, graph by graph."""
    tokens: Sequence[TokenChunk]
    """Of the first B rows, in that order; empty where the model reads none."""
    pairs: Tensor | None = None
    """(K, 2) int64 rows: the items of a link task."""

    def __post_init__(self) -> None:
        for name, value in (("x", self.x), ("encodings", self.encodings), ("log_degree", self.log_degree)):
            if value is not None and len(value) != self.rows:
                raise ModelError(f"{name} has {len(value)} rows, expected one for each of the {self.rows} nodes")
        for name, value in (("x", self.x), ("encodings", self.encodings), ("edge_attr", self.edge_attr)):
            if value is not None and value.is_floating_point():
                check_finite(**{name: value})
        edges = self.near.edge_index
        if edges.dim() != 2 or edges.shape[0] != 2 or edges.dtype != torch.int64:
            raise ModelError(f"edge_index is {edges.dtype} {tuple(edges.shape)}, expected int64 (2, edges)")
        if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= self.scanned):
            raise ModelError(f"edge_index points outside the {self.scanned} scanned rows")
        if self.edge_attr is not None and len(self.edge_attr) < edges.shape[1]:
            raise ModelError(f"edge_attr has {len(self.edge_attr)} rows for {edges.shape[1]} edges")
        if not self.targets <= self.scanned <= self.rows:
            raise ModelError(
                f"{self.targets} nodes asked for, {self.scanned} scanned, {self.rows} rows: they must not fall"
            )

    @property
    def rows(self) -> int:
        """U."""
        return len(self.node_ids)

    @property
    def scanned(self) -> int:
        """S."""
        return len(self.order.rows)

    @property
    def has_tokens(self) -> bool:
        return len(self.tokens) > 0 or self.targets == 0


class InputSource:
    """A view of a store and the settings that decide what is read of it. Opened once, used for every epoch."""

    def __init__(self, view: TokenView, config: ModelConfig, *, seed: int = 0) -> None:
        """seed: of everything that is drawn per epoch. StoreError where the store lacks an encoding or ordering."""
        self.view, self.config, self.seed = view, config, seed
        self.graph: Graph = view.store.graph
        self.parts: Sequence[Part] = token_parts(config.encoder) if config.uses_tokens else ()
        self.reads_tokens = config.uses_tokens and view.settings.m > 0
        if self.graph.num_nodes == 0:
            raise ModelError(f"{view.store.path} holds an empty graph; there is nothing to train on")

    @cached_property
    def laplacian(self) -> FloatArray | None:
        """(n, k), unit vectors as stored."""
        return self._encoding("laplacian", "vectors")

    @cached_property
    def random_walk(self) -> FloatArray | None:
        """(n, k)"""
        return self._encoding("random_walk", "values")

    def _encoding(self, name: str, array: str) -> FloatArray | None:
        wanted, present = self.config.encodings, self.view.store.manifest.encodings
        if wanted == name or (wanted == "all" and name in present):
            return self.view.store.encoding(name)[array]
        return None

    @cached_property
    def ranks(self) -> IntArray:
        """(n,) importance of each node in the scan; equal where tied."""
        name = self.config.order
        if name == "random":
            return np.zeros(self.graph.num_nodes, dtype=np.int32)
        if name == "degree" and name not in self.view.store.manifest.orderings:
            return self.graph.degrees
        return self.view.store.ordering(name)["ranks"]

    @cached_property
    def graph_ptr(self) -> IntArray:
        """(graphs+1,) int64, also for one graph."""
        given = self.graph.graph_ptr
        return np.array([0, self.graph.num_nodes]) if given is None else given

    @cached_property
    def facts(self) -> InputFacts:
        """What a model for this source must be made for."""
        g, task = self.graph, self.graph.task
        extra = sum(0 if e is None else e.shape[1] for e in (self.laplacian, self.random_walk))
        return InputFacts(
            x_columns=0 if g.x is None else g.x.shape[1],
            x_categories=g.x_categories,
            extra_columns=extra + int(self.config.log_degree),
            edge_columns=0 if self.edge_attr is None else self.edge_attr.shape[1],
            edge_categories=None if self.edge_attr is None else g.edge_categories,
            tokens=self.view.settings,
            level=task.level if task else "node",
            outputs=task.outputs if task else self.config.width,
        )

    @cached_property
    def all_edges(self) -> Neighbourhood:
        """Of all graphs at once; kept, with what branches derive from it."""
        return neighbourhood(self.graph.slot_sources, self.graph.indices, self.graph.num_nodes, self.graph.directed)

    @property
    def edge_attr(self) -> Array | None:
        """(E, Fe) by CSR slot, where the graph has edge features and the model reads them."""
        return self.graph.edge_attr if self.config.uses_edge_features else None

    @cached_property
    def all_edge_attr(self) -> Tensor | None:
        return None if self.edge_attr is None else feature_tensor(self.edge_attr)


def whole_inputs(
    source: InputSource,
    graphs: Array | Sequence[int] | None = None,
    *,
    epoch: int | None = None,
    chunk_nodes: int | None = None,
    keep_tokens: bool = True,
    pairs: Array | None = None,
) -> ModelInputs:
    """All nodes of some graphs, packed; of every graph unless told: `full` mode for one graph, batches for many.

    epoch: of training, from 0; None for evaluation. chunk_nodes: nodes whose tokens are encoded at a time; all of them
    unless given. keep_tokens: False reads a chunk from the store whenever it is used, so that memory does not grow
    with the store. pairs: (K, 2) node ids.
    """
    g, borders = source.graph, source.graph_ptr
    everything = graphs is None
    chosen = np.arange(len(borders) - 1) if graphs is None else np.asarray(graphs, np.int64)
    if chosen.size and (chosen.min() < 0 or chosen.max() >= len(borders) - 1):
        raise ModelError(f"graphs {chosen.min()}..{chosen.max()} asked for; the store has 0..{len(borders) - 2}")
    sizes = borders[chosen + 1] - borders[chosen]
    ids = concatenate_ranges(borders[chosen], sizes)  # (U,)
    starts = np.append(0, np.cumsum(sizes))
    shifts = borders[chosen] - starts[:-1]  # id - row, by graph
    first_slots = g.indptr[borders[chosen]]
    slot_counts = g.indptr[borders[chosen + 1]] - first_slots
    slot_shifts = first_slots - np.append(0, np.cumsum(slot_counts))[:-1]
    if everything:
        near, edge_attr = source.all_edges, source.all_edge_attr
    else:
        slots = concatenate_ranges(first_slots, slot_counts)  # (E,)
        shift = np.repeat(shifts, slot_counts)
        near = neighbourhood(g.slot_sources[slots] - shift, g.indices[slots] - shift, len(ids), g.directed)
        edge_attr = None if source.edge_attr is None else feature_tensor(source.edge_attr[slots])

    graph_of = np.repeat(np.arange(len(chosen)), sizes)  # (U,) place of each row's graph in the batch
    step = len(ids) if chunk_nodes is None else chunk_nodes
    if step < 1 and len(ids):
        raise ModelError(f"chunk_nodes is {chunk_nodes}; it must be at least 1")

    def load(number: int) -> TokenChunk:
        rows = slice(number * step, min((number + 1) * step, len(ids)))
        batch = gather_tokens(source, ids[rows], epoch)
        nodes, edge_rows = batch.nodes, None if source.edge_attr is None else batch.edge_slots
        if not everything:
            nodes = nodes - per_token_node(batch, batch.node_ptr, shifts[graph_of[rows]])
            if edge_rows is not None and batch.edge_ptr is not None:
                edge_rows = edge_rows - per_token_node(batch, batch.edge_ptr, slot_shifts[graph_of[rows]])[:, None]
        return TokenChunk.of(batch, nodes, edge_rows, rows=len(ids), directed=g.directed, first=rows.start)

    tokens: Sequence[TokenChunk] = ()
    if source.reads_tokens and len(ids):
        count = -(-len(ids) // step)
        tokens = tuple(load(i) for i in range(count)) if keep_tokens else LazyChunks(count, load)
    return ModelInputs(
        settings=source.view.settings,
        node_ids=torch.from_numpy(ids),
        targets=len(ids),
        **node_tensors(source, ids, chosen, graph_of, epoch),
        near=near,
        edge_attr=edge_attr,
        order=scan_order(source, ids, graph_of, starts, epoch),
        tokens=tokens,
        pairs=pair_rows(ids, pairs),
    )


def batch_inputs(
    source: InputSource,
    node_ids: Array | Sequence[int],
    *,
    epoch: int | None = None,
    scan_context: bool | None = None,
    pairs: Array | None = None,
) -> ModelInputs:
    """Some nodes of one large graph with the nodes of their tokens: an approximation, in memory that follows the batch.

    node_ids: (B,) distinct. scan_context: whether node layers run on the tokens' other nodes too (those have no tokens
    of their own); unless told, where token blocks stand between layers, which need it.
    """
    g, config = source.graph, source.config
    ids = np.asarray(node_ids, np.int64)
    if g.num_graphs != 1:
        raise ModelError("batch_inputs cuts one large graph; of many graphs, choose some with whole_inputs(graphs=...)")
    if len(np.unique(ids)) != len(ids):
        raise ModelError("a batch names a node twice; each node may stand in it once")
    context = bool(config.blocks_after) if scan_context is None else scan_context
    batch = gather_tokens(source, ids, epoch) if source.reads_tokens else None
    entries = ids[:0] if batch is None else batch.nodes.astype(np.int64)
    distinct, place = np.unique(np.concatenate([ids, entries]), return_inverse=True)
    row_of = np.full(len(distinct), -1)  # of each distinct node
    row_of[place[: len(ids)]] = np.arange(len(ids))
    others = np.flatnonzero(row_of < 0)
    row_of[others] = len(ids) + np.arange(len(others))
    rows = np.concatenate([ids, distinct[others]])  # (U,) node ids
    scanned = rows if context else ids  # (S,)

    slots, near = edges_among(g, scanned)
    edge_attr, edge_rows = None, None
    if source.edge_attr is not None:
        token_slots = np.zeros(0, np.int64) if batch is None or batch.edge_slots is None else batch.edge_slots
        extra, edge_place = np.unique(token_slots, return_inverse=True)
        edge_attr = feature_tensor(source.edge_attr[np.concatenate([slots, extra]).astype(np.int64)])
        edge_rows = len(slots) + edge_place.reshape(token_slots.shape)
    tokens: Sequence[TokenChunk] = ()
    if batch is not None and len(ids):
        with_slots = None if batch.edge_slots is None else edge_rows
        chunk = TokenChunk.of(batch, row_of[place[len(ids) :]], with_slots, rows=len(rows), directed=g.directed)
        tokens = (chunk,)
    one = np.zeros(len(rows), np.int64)
    return ModelInputs(
        settings=source.view.settings,
        node_ids=torch.from_numpy(rows),
        targets=len(ids),
        **node_tensors(source, rows, np.zeros(1, np.int64), one, epoch),
        near=near,
        edge_attr=edge_attr,
        order=scan_order(source, scanned, one[: len(scanned)], np.array([0, len(scanned)]), epoch),
        tokens=tokens,
        pairs=pair_rows(ids, pairs),
    )


def gather_tokens(source: InputSource, ids: IntArray, epoch: int | None) -> TokenBatch:
    """The nodes' tokens, their repeats drawn for the epoch."""
    view, stored = source.view, source.view.store.settings.s
    repeats = None
    if epoch is not None and source.config.repeats == "draw" and stored > 1:
        repeats = draw_repeats(source.seed, epoch, ids, view.settings.m, view.settings.s, stored)
        repeats = None if len(ids) == 0 else repeats
    return view.gather(ids, parts=source.parts, repeats=repeats)


def node_tensors(
    source: InputSource, ids: IntArray, graphs: IntArray, graph_of: IntArray, epoch: int | None
) -> dict[str, Tensor | None]:
    """x, encodings and log_degree of the nodes `ids`; graph_of (U,) is each one's place in `graphs`."""
    g = source.graph
    columns = []
    if source.laplacian is not None:
        flip = epoch if source.config.lap_signs == "flip" else None
        signs = draw_signs(source.seed, flip, graphs, source.laplacian.shape[1])  # (graphs, k)
        # Unit vectors of n nodes have entries near n^-1/2: scaled to order 1, so that graph size does not decide.
        scale = np.sqrt(np.diff(source.graph_ptr)[graphs]).astype(np.float32)
        columns.append(source.laplacian[ids] * (signs * scale[:, None])[graph_of])
    if source.random_walk is not None:
        columns.append(source.random_walk[ids])
    degree = np.log1p(g.degrees[ids]).astype(np.float32)[:, None] if source.config.log_degree else None
    return {
        "x": None if g.x is None else feature_tensor(g.x[ids]),
        "encodings": torch.from_numpy(np.concatenate(columns, 1)) if columns else None,
        "log_degree": None if degree is None else torch.from_numpy(degree),
    }


def scan_order(
    source: InputSource, ids: IntArray, graph_of: IntArray, starts: IntArray, epoch: int | None
) -> NodeOrder:
    """Rows by graph, then rank, then a random draw per node: never by id, which would leak positions."""
    ties = draw_ties(source.seed, epoch if source.config.order_ties == "epoch" else None, ids)
    rows = np.lexsort((ties, source.ranks[ids], graph_of))
    return NodeOrder(torch.from_numpy(rows), torch.from_numpy(np.asarray(starts, np.int64)))


def edges_among(graph: Graph, ids: IntArray) -> tuple[IntArray, Neighbourhood]:
    """CSR slots (E,) between the given nodes, and the edges they are, in rows of `ids`."""
    counts = graph.degrees[ids]
    slots = concatenate_ranges(graph.indptr[ids], counts)
    sorter = np.argsort(ids, kind="stable")
    neighbours = graph.indices[slots]
    found = np.searchsorted(ids, neighbours, sorter=sorter)
    target = sorter[np.minimum(found, len(ids) - 1)] if len(ids) else found
    inside = ids[target] == neighbours if len(ids) else np.zeros(0, bool)
    source_rows = np.repeat(np.arange(len(ids)), counts)[inside]
    return slots[inside], neighbourhood(source_rows, target[inside], len(ids), graph.directed)


def pair_rows(ids: IntArray, pairs: Array | None) -> Tensor | None:
    """Pairs of node ids as rows of `ids`; ModelError where one is not among them."""
    if pairs is None:
        return None
    wanted = np.asarray(pairs, np.int64)
    if wanted.ndim != 2 or wanted.shape[1] != 2:
        raise ModelError(f"pairs has shape {wanted.shape}, expected (K, 2) node ids")
    sorter = np.argsort(ids, kind="stable")
    found = np.minimum(np.searchsorted(ids, wanted, sorter=sorter), len(ids) - 1)
    rows = sorter[found]
    if wanted.size and not np.array_equal(ids[rows], wanted):
        raise ModelError("pairs name nodes that are not among the batch's; ask for both ends of every pair")
    return torch.from_numpy(rows.astype(np.int64))


def neighbourhood(source: IntArray, target: IntArray, rows: int, directed: bool) -> Neighbourhood:
    edge_index = torch.from_numpy(np.stack([source, target]).astype(np.int64))  # (2, E)
    return Neighbourhood(edge_index, rows, symmetric=not directed)


def feature_tensor(values: Array) -> Tensor:
    """Features as float32, or categories as int64; a copy, so that a mapped file is never written to."""
    return torch.from_numpy(values.astype(np.float32 if values.dtype.kind == "f" else np.int64))


def concatenate_ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """starts[i], starts[i] + 1, ... counts[i] of them, for every i: (sum of counts,) int64."""
    total = int(counts.sum())
    offsets = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    ranges: IntArray = np.arange(total, dtype=np.int64) + offsets
    return ranges


def per_token_node(batch: TokenBatch, pointer: IntArray, values: IntArray) -> IntArray:
    """values (B,), one per node of the batch, repeated for every entry of its tokens."""
    repeated: IntArray = np.repeat(values, np.diff(pointer[:: batch.length]))
    return repeated


def to_device(inputs: ModelInputs, device: torch.device | str) -> ModelInputs:
    """The same inputs on another device; chunks that are read lazily are moved as they are read."""
    moved = move(inputs, device)
    near = Neighbourhood(inputs.near.edge_index.to(device), inputs.near.rows, inputs.near.symmetric)
    chunks = inputs.tokens
    object.__setattr__(moved, "near", near)
    object.__setattr__(moved, "order", NodeOrder(inputs.order.rows.to(device), inputs.order.graph_ptr))
    object.__setattr__(moved, "tokens", LazyChunks(len(chunks), lambda i: chunks[i].to(device)))
    return moved  # type: ignore[no-any-return]
