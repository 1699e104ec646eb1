"""What a model takes, as one frozen record of tensors, and the parts of it that node layers use.

Rows: the B nodes asked for come first, then other nodes of their tokens (only in a batch of a larger graph), U in all.
Node layers run on the first S rows: all of them, or in a batch the B nodes alone. For whole graphs B = S = U.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from gmn_train.data.inputs.entries import FeatureEntries
    from gmn_train.model.message_passing.edge_order import EdgeOrder

from collections.abc import Mapping, Sequence
from dataclasses import field

from gmn_pipeline.errors import ModelError
from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_train.data.token_chunks import LazyChunks, TokenChunk, chunk_sizes, move
from gmn_train.model.scan.checks import check_finite


class NodeOrder:
    """The order in which nodes are scanned: `rows` (S,) by place, `places` (S,) by row, `graph_ptr` (G+1,) borders."""

    def __init__(self, rows: Tensor, graph_ptr: Tensor) -> None:
        self.rows, self.graph_ptr = rows, graph_ptr
        self.places = torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows), device=rows.device))


@dataclass(frozen=True)
class Neighbourhood:
    """The edges that node layers pass messages along, and what is derived from them once."""

    edge_index: Tensor
    """(2, E) int64: messages go from row 0 to row 1."""
    rows: int
    """S: rows of node states they connect."""
    symmetric: bool
    """Whether every edge has its reverse."""

    @property
    def targets(self) -> int:
        """Rows that messages go to: the first ones."""
        return self.rows

    @cached_property
    def edge_order(self) -> "EdgeOrder":
        """The edges by target and by source, for the kernels."""
        from gmn_train.model.message_passing.edge_order import order_edges

        return order_edges(self.edge_index, self.rows)

    @cached_property
    def gcn_matrix(self) -> tuple[Tensor, Tensor]:
        """D^-1/2 (A + I) D^-1/2 as (S, S) sparse CSR, and its transpose."""
        lacking = torch.ones(self.rows, dtype=torch.bool, device=self.edge_index.device)
        lacking[self.edge_index[0, self.edge_index[0] == self.edge_index[1]]] = False
        edge_index = torch.cat([self.edge_index, lacking.nonzero().T.expand(2, -1)], 1)
        root = torch.bincount(edge_index[1], minlength=self.rows).rsqrt()  # (S,) D^-1/2
        weight = root[edge_index[0]] * root[edge_index[1]]
        matrix = sparse_csr(edge_index.flip(0), weight, self.rows)
        return matrix, matrix if self.symmetric else sparse_csr(edge_index, weight, self.rows)


def sparse_csr(entries: Tensor, values: Tensor, rows: int) -> Tensor:
    """A (rows, rows) CSR matrix from (2, E) coordinates."""
    return csr_matrix(entries, values, (rows, rows))


def csr_matrix(entries: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A CSR matrix from (2, E) coordinates; int32 indices, which MKL takes as they are."""
    order = torch.argsort(entries[0] * shape[1] + entries[1])
    row, column = entries[:, order]
    pointer = torch.searchsorted(row.contiguous(), torch.arange(shape[0] + 1, device=row.device))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")  # products are all we need of it
        return torch.sparse_csr_tensor(pointer.int(), column.int(), values[order], shape, check_invariants=False)


@dataclass(frozen=True)
class InputFacts:
    """The widths a model is made for."""

    x_columns: int
    x_categories: tuple[int, ...] | None
    extra_columns: int
    """Columns of positional encodings and degree."""
    smooth_columns: int
    """The first of those: encodings that vary slowly over the graph."""
    edge_columns: int
    edge_categories: tuple[int, ...] | None
    tokens: TokenSettings
    item: str
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
    """(U, P) float32 positional encodings."""
    degrees: Tensor | None
    """(U, k) float32: log degree, degree profile."""
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
    extra: Mapping[str, Tensor] = field(default_factory=dict)
    """By name, what only some models read."""
    entries: "FeatureEntries | None" = None
    """x again, where it is mostly zeros and the graph is whole; models may read either."""

    def __post_init__(self) -> None:
        for name, value in (("x", self.x), ("encodings", self.encodings), ("degrees", self.degrees)):
            if value is not None and len(value) != self.rows:
                raise ModelError(f"{name} has {len(value)} rows, expected one for each of the {self.rows} nodes")
        for name, value in (("x", self.x), ("encodings", self.encodings), ("edge_attr", self.edge_attr)):
            if value is not None and value.is_floating_point():
                check_finite(**{name: value})
        edges = self.near.edge_index
        if edges.dim() != 2 or edges.shape[0] != 2 or edges.dtype != torch.int64:
            raise ModelError(f"edge_index is {edges.dtype} {tuple(edges.shape)}, expected int64 (2, edges)")
        if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= self.near.rows):
            raise ModelError(f"edge_index points outside the {self.near.rows} rows that it connects")
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


def to_device(inputs: ModelInputs, device: torch.device | str) -> ModelInputs:
    """The same inputs on another device; chunks that are read lazily are moved as they are read."""
    moved = move(inputs, device)
    near = Neighbourhood(inputs.near.edge_index.to(device), inputs.near.rows, inputs.near.symmetric)
    chunks = inputs.tokens
    object.__setattr__(moved, "extra", {name: value.to(device) for name, value in inputs.extra.items()})
    object.__setattr__(moved, "near", near)
    object.__setattr__(moved, "entries", inputs.entries if torch.device(device).type == "cpu" else None)
    object.__setattr__(moved, "order", NodeOrder(inputs.order.rows.to(device), inputs.order.graph_ptr))
    object.__setattr__(moved, "tokens", LazyChunks(chunk_sizes(chunks), lambda i: chunks[i].to(device)))
    return moved  # type: ignore[no-any-return]
