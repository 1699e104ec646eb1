"""A node layer: BiMamba over the nodes in order, graph by graph, beside a message-passing branch.

    residual `linear`:    h <- ReLU(norm(W h + messages(h) + scan(h)))
    residual `identity`:  h <- norm(h + ReLU(messages(h)) + scan(h))
    then, where asked for, h <- h + FFN(norm(h))

The linear form is that of strong plain GCNs (no identity skip): without the scan it is their control.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from gmn_pipeline.errors import ModelError
from gmn_train.data.inputs.record import Neighbourhood, NodeOrder
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.layers.edge_states import EdgeStates
from gmn_train.model.layers.full_precision import full
from gmn_train.model.layers.norms import BatchNorm, LayerNorm
from gmn_train.model.layers.quick_dropout import quick_dropout

Norm = Literal["batch", "layer", "none"]
Residual = Literal["linear", "identity"]


class NodeLayer(nn.Module):
    """See the module.

    Args:
        width: d.
        scan: the BiMamba over nodes, or None for message passing alone (the control).
        branch: of `branches`, or None.
        residual: `linear` or `identity`, as above.
        norm: of the sum; BatchNorm's statistics are over the rows given.
        ffn: hidden units of the feed-forward step in multiples of the width; 0 leaves it out.
    """

    def __init__(
        self,
        width: int,
        scan: BiMamba | None,
        branch: nn.Module | None,
        *,
        residual: Residual = "linear",
        norm: Norm = "batch",
        ffn: float = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if scan is None and branch is None:
            raise ModelError("a node layer with neither a scan nor an MPNN branch mixes nothing; give it one of them")
        self.scan, self.branch, self.dropout = scan, branch, dropout
        self.skip = nn.Linear(width, width) if residual == "linear" else None
        self.norm = make_norm(norm, width)
        self.ffn: nn.Module | None = None
        if ffn:
            hidden = int(ffn * width)
            self.ffn = nn.Sequential(
                make_norm(norm, width), nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width)
            )

    def forward(self, h: Tensor, order: NodeOrder, near: Neighbourhood, edge_states: EdgeStates | None) -> Tensor:
        """h (S, d) in row order, likewise the result."""
        out = h if self.skip is None else full(self.skip(h))
        if self.branch is not None:
            messages = full(self.branch(h, near, edge_states))
            out = out + (relu(messages) if self.skip is None else messages)
        if self.scan is not None:
            in_order = permute_rows(h, order.rows, order.places)  # (S, d) in scan order
            update = self.scan(in_order, order.graph_ptr) - in_order
            out = out + quick_dropout(permute_rows(update, order.places, order.rows), self.dropout, self.training)
        out = self.norm(out)
        if self.skip is not None:
            out = quick_dropout(relu(out), self.dropout, self.training)
        if self.ffn is not None:
            out = out + quick_dropout(full(self.ffn(out)), self.dropout, self.training)
        return out


class PermuteRows(torch.autograd.Function):
    """x[rows], whose gradient is grad[places]: a copy, where indexing's own gradient adds up entry by entry."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        ctx.places = places
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return grad.index_select(0, ctx.places), None, None


def permute_rows(x: Tensor, rows: Tensor, places: Tensor) -> Tensor:
    """x[rows] for a permutation `rows` with inverse `places`."""
    out: Tensor = PermuteRows.apply(x, rows, places)  # type: ignore[no-untyped-call]
    return out


def make_norm(name: Norm, width: int) -> nn.Module:
    """A norm over rows (S, d)."""
    norms = {"batch": BatchNorm, "layer": LayerNorm}
    return norms[name](width) if name in norms else nn.Identity()
