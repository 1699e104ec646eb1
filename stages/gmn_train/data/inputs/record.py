"""What a model takes, as one frozen record of tensors.

Rows: the B nodes asked for come first, then other nodes of their tokens (only in a batch of a larger graph), U in all.
Node layers run on the first S rows: all of them, or in a batch the B nodes alone. For whole graphs B = S = U.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gmn_pipeline.errors import ModelError
from gmn_pipeline.store.token_settings import TokenSettings
from gmn_train.data.neighbourhood import Neighbourhood
from gmn_train.data.node_order import NodeOrder
from gmn_train.data.token_chunks import LazyChunks, TokenChunk, chunk_sizes, move
from gmn_train.model.scan.checks import check_finite


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
    """(U, P) float32 positional encodings."""
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
    extra: Mapping[str, Tensor] = field(default_factory=dict)
    """By name, what only some models read."""

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


def to_device(inputs: ModelInputs, device: torch.device | str) -> ModelInputs:
    """The same inputs on another device; chunks that are read lazily are moved as they are read."""
    moved = move(inputs, device)
    near = Neighbourhood(inputs.near.edge_index.to(device), inputs.near.rows, inputs.near.symmetric)
    chunks = inputs.tokens
    object.__setattr__(moved, "extra", {name: value.to(device) for name, value in inputs.extra.items()})
    object.__setattr__(moved, "near", near)
    object.__setattr__(moved, "order", NodeOrder(inputs.order.rows.to(device), inputs.order.graph_ptr))
    object.__setattr__(moved, "tokens", LazyChunks(chunk_sizes(chunks), lambda i: chunks[i].to(device)))
    return moved  # type: ignore[no-any-return]
