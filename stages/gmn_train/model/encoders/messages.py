"""Message passing on the induced subgraphs with PyG's layers: the body that `gatedgcn` and `gine` share."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from gmn_train.data.token_chunks import TokenChunk
from gmn_train.model.encoders.flat_edges import flat_edge_index, flat_edge_rows
from gmn_train.model.encoders.pooling import pool_entries
from gmn_train.model.layers.rowwise.full_precision import full

Convolve = Callable[[nn.Module, Tensor, Tensor, Tensor | None], Tensor]


class MessageEncoder(nn.Module):
    """`layers` of a PyG convolution over all tokens of a chunk as one disjoint union, then the mean over each token.

    Each layer is x <- x + ReLU(conv(x)). Memory: a few (N, d) tensors per layer, so chunks matter here.
    """

    def __init__(self, width: int, convolutions: Sequence[nn.Module], convolve: Convolve) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)
        self.convolutions = nn.ModuleList(convolutions)
        self._convolve = convolve

    def prepare(self, h: Tensor, edge_states: Tensor | None) -> tuple[Tensor, ...]:
        """What is computed once per node, (U, d), and once per edge, (edges, d) where there are features."""
        return (self.project(h),) if edge_states is None else (self.project(h), edge_states)

    def forward(self, chunk: TokenChunk, projected: Tensor, edge_states: Tensor | None = None) -> Tensor:
        """(T, d)"""
        edge_index = torch.stack(flat_edge_index(chunk))  # (2, E')
        edges = None if edge_states is None else edge_states[flat_edge_rows(chunk)]  # (E', d)
        x = projected[chunk.nodes.long()]  # (N, d)
        for convolution in self.convolutions:
            x = x + torch.relu(full(self._convolve(convolution, x, edge_index, edges)))
        entries = torch.arange(len(x), dtype=torch.int32, device=x.device)
        return pool_entries(x, entries, chunk.node_ptr)
