"""The MPNN branch beside a node layer's scan, by name: `gcn`, `gatedgcn`, `gine`.

`gcn` is one product with D^-1/2 (A + I) D^-1/2, whose transpose is kept for the gradient: 6.2 ms forward and backward
on Minesweeper at width 64, PyG's GCNConv (cached, edge index) 13.8 ms.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from gmn_pipeline.errors import ModelError, nearest
from gmn_train.model.encoders.gatedgcn import gated_convolution, gated_messages
from gmn_train.model.encoders.gine import gine_convolution, gine_messages
from gmn_train.model.layers.edge_order import EdgeOrder, order_edges
from gmn_train.model.layers.edge_states import EdgeStates
from gmn_train.model.layers.gated import gated_outputs
from gmn_train.model.layers.gine_sums import gine_outputs
from gmn_train.model.scan.checks import has_kernels


@dataclass(frozen=True)
class Neighbourhood:
    """The edges that node layers pass messages along, and what is derived from them once."""

    edge_index: Tensor
    """(2, E) int64: messages go from row 0 to row 1."""
    rows: int
    """S: rows of node states they connect."""
    symmetric: bool
    """Whether every edge has its reverse."""

    @cached_property
    def edge_order(self) -> EdgeOrder:
        """The edges by target and by source, for the kernels."""
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
    """A (rows, rows) CSR matrix from (2, E) coordinates; int32 indices, which MKL takes as they are."""
    order = torch.argsort(entries[0] * rows + entries[1])
    row, column = entries[:, order]
    pointer = torch.searchsorted(row.contiguous(), torch.arange(rows + 1, device=row.device))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")  # products are all we need of it
        return torch.sparse_csr_tensor(pointer.int(), column.int(), values[order], (rows, rows), check_invariants=False)


class SparseProduct(torch.autograd.Function):
    """matrix @ x with the transpose at hand for the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        with torch.autocast(x.device.type, enabled=False):  # it would make the sparse matrix bfloat16
            return matrix @ x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.transpose @ grad.contiguous(), None, None


class GcnBranch(nn.Module):
    """Â h W: see the module."""

    def __init__(self, width: int, edge_features: bool) -> None:  # noqa: ARG002
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, h: Tensor, near: Neighbourhood, edge_states: EdgeStates | None) -> Tensor:  # noqa: ARG002
        matrix, transpose = near.gcn_matrix
        if h.dtype != matrix.dtype:
            matrix, transpose = matrix.to(h.dtype), transpose.to(h.dtype)
        summed: Tensor = SparseProduct.apply(h, matrix, transpose)  # type: ignore[no-untyped-call]
        return self.project(summed)  # type: ignore[no-any-return]


class GatedBranch(nn.Module):
    """GatedGCN with the parameters of PyG's layer; by kernels on the CPU, by PyG elsewhere."""

    def __init__(self, width: int, edge_features: bool) -> None:
        super().__init__()
        self.convolution = gated_convolution(width, edge_features)

    def forward(self, h: Tensor, near: Neighbourhood, edge_states: EdgeStates | None) -> Tensor:
        if has_kernels(h):
            return gated_outputs(self.convolution, h, near.edge_order, edge_states)
        return gated_messages(
            self.convolution, h, near.edge_index, None if edge_states is None else edge_states.of_all()
        )


class GineBranch(nn.Module):
    """GINE with the parameters of PyG's layer; by kernels on the CPU, by PyG elsewhere."""

    def __init__(self, width: int, edge_features: bool) -> None:
        super().__init__()
        self.convolution = gine_convolution(width, edge_features)

    def forward(self, h: Tensor, near: Neighbourhood, edge_states: EdgeStates | None) -> Tensor:
        if has_kernels(h):
            return gine_outputs(self.convolution, h, near.edge_order, edge_states)
        return gine_messages(
            self.convolution, h, near.edge_index, None if edge_states is None else edge_states.of_all()
        )


BRANCHES: dict[str, Callable[[int, bool], nn.Module]] = {
    "gcn": GcnBranch,
    "gatedgcn": GatedBranch,
    "gine": GineBranch,
}


def make_branch(name: str, width: int, edge_features: bool) -> nn.Module | None:
    """A branch by name, None for `none`; ModelError names the nearest where there is none."""
    if name == "none":
        return None
    if name not in BRANCHES:
        allowed = [*BRANCHES, "none"]
        raise ModelError(f"MPNN branch '{name}' is not one of {', '.join(allowed)}{nearest(name, allowed)}")
    return BRANCHES[name](width, edge_features)
