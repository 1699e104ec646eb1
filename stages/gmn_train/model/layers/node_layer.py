"""A node layer: BiMamba over the nodes in order, graph by graph, beside a message-passing branch.

    residual `linear`:    h <- ReLU(norm(W h + messages(h) + scan(h)))
    residual `none`:      h <- ReLU(norm(messages(h) + scan(h)))
    residual `identity`:  h <- norm(h + ReLU(messages(h)) + scan(h))
    then, where asked for, h <- h + FFN(norm(h))

With activation `gelu`, read GELU. The linear form is that of strong plain GCNs (no identity skip): without the scan
it is their control.
"""

from typing import Any

import torch
from torch import Tensor, nn

from gmn_pipeline.errors import ModelError
from gmn_train.data.inputs.record import Neighbourhood, NodeOrder
from gmn_train.grains.grain import row_grain_here
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.layers.heads import ACTIVATIONS
from gmn_train.model.layers.rowwise.finish import ACTIVATE, finish
from gmn_train.model.layers.rowwise.full_precision import full
from gmn_train.model.layers.rowwise.norms import BatchNorm, LayerNorm
from gmn_train.model.layers.rowwise.quick_dropout import quick_dropout
from gmn_train.model.message_passing.edge_states import EdgeStates
from gmn_train.model.message_passing.reach import pass_messages
from gmn_train.settings.model_settings import Activation, Norm, Residual


class NodeLayer(nn.Module):
    """See the module.

    Args:
        width: d.
        scan_width: features of the scan; the width unless given.
        scan: the BiMamba over nodes, or None for message passing alone (the control).
        branch: of `branches`, or None.
        residual: as above.
        norm: of the sum; BatchNorm's statistics are over the rows given.
        ffn: hidden units of the feed-forward step in multiples of the width; 0 leaves it out.
    """

    def __init__(
        self,
        width: int,
        scan: BiMamba | None,
        branch: nn.Module | None,
        *,
        scan_width: int | None = None,
        residual: Residual = "linear",
        norm: Norm = "batch",
        activation: Activation = "relu",
        ffn: float = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if scan is None and branch is None:
            raise ModelError("a node layer with neither a scan nor an MPNN branch mixes nothing; give it one of them")
        self.scan, self.branch, self.dropout, self.residual = scan, branch, dropout, residual
        self.activation: Activation = activation
        narrow = scan is not None and scan_width not in (None, width)
        self.down = nn.Linear(width, scan_width or width) if narrow else None
        self.up = nn.Linear(scan_width or width, width) if narrow else None
        self.skip = nn.Linear(width, width) if residual == "linear" else None
        self.norm = make_norm(norm, width)
        self.ffn: nn.Module | None = None
        if ffn:
            hidden = int(ffn * width)
            self.ffn = nn.Sequential(
                make_norm(norm, width), nn.Linear(width, hidden), ACTIVATIONS[activation](), nn.Linear(hidden, width)
            )

    def forward(self, h: Tensor, order: NodeOrder, near: Neighbourhood, edge_states: EdgeStates | None) -> Tensor:
        """h (S, d) in row order, likewise the result."""
        identity = self.residual == "identity"
        # A branch that has a linear map of h itself takes the skip into it: a fifth of GatedGCN's products.
        joined = [] if self.skip is None or not getattr(self.branch, "adds_skip", False) else [self.skip]
        parts = [h] if identity else [full(self.skip(h))] if self.skip is not None and not joined else []
        if self.branch is not None:
            messages = full(pass_messages(self.branch, h, near, edge_states, *joined))
            parts.append(ACTIVATE[self.activation](messages) if identity else messages)
        if self.scan is not None:
            update = scan_nodes(self.scan, h if self.down is None else full(self.down(h)), order)
            if self.up is not None:
                update = full(self.up(update))
            parts.append(quick_dropout(update, self.dropout, self.training))
        total = sum(parts[1:], parts[0])
        out: Tensor = (
            self.norm(total) if identity else finish(self.norm, total, self.activation, self.dropout, self.training)
        )
        if self.ffn is not None:
            out = out + quick_dropout(full(self.ffn(out)), self.dropout, self.training)
        return out


def scan_nodes(scan: BiMamba, h: Tensor, order: NodeOrder) -> Tensor:
    """The scan's update of h (S, d), both in row order."""
    if (grain := row_grain_here()) is not None:
        from gmn_train.model.layers.split_scan import scan_own_rows

        return scan_own_rows(scan, h, grain)
    in_order = permute_rows(h, order.rows, order.places)  # (S, d) in scan order
    return permute_rows(scan(in_order, order.graph_ptr) - in_order, order.places, order.rows)


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
