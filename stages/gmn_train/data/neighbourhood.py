"""The edges that node layers pass messages along, and what is derived from them once."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from gmn_train.model.layers.edge_order import EdgeOrder


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
    def edge_order(self) -> "EdgeOrder":
        """The edges by target and by source, for the kernels."""
        from gmn_train.model.layers.edge_order import order_edges

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
