"""From node states to predictions: per node, per graph or per pair of nodes."""

from typing import Literal

import torch
from torch import Tensor, nn

from gmn_pipeline.errors import ModelError
from gmn_train.model.layers.full_precision import full
from gmn_train.model.layers.norms import LayerNorm

Pool = Literal["mean", "max", "sum"]


class NodeHead(nn.Module):
    """(B, d) -> (B, outputs)."""

    def __init__(self, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.predict = predictor(width, outputs, dropout)

    def forward(self, h: Tensor) -> Tensor:
        return full(self.predict(h))


class GraphHead(nn.Module):
    """(S, d) with borders -> (graphs, outputs)."""

    def __init__(self, width: int, outputs: int, dropout: float, pool: Pool) -> None:
        super().__init__()
        self.pool: Pool = pool
        self.predict = predictor(width, outputs, dropout)

    def forward(self, pooled: Tensor) -> Tensor:
        return full(self.predict(pooled))


class LinkHead(nn.Module):
    """States of both ends, (pairs, d) each -> (pairs, outputs); the order of a pair makes no difference."""

    def __init__(self, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.predict = predictor(2 * width, outputs, dropout)

    def forward(self, h: Tensor, pairs: Tensor) -> Tensor:
        a, b = h[pairs[:, 0]], h[pairs[:, 1]]
        return full(self.predict(torch.cat([a * b, a + b], 1)))


def predictor(width: int, outputs: int, dropout: float) -> nn.Sequential:
    """LayerNorm, one hidden layer, and the last linear map."""
    return nn.Sequential(
        LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, outputs)
    )


def pool_graphs(h: Tensor, graph_ptr: Tensor, pool: Pool) -> Tensor:
    """Mean, maximum or sum of rows graph_ptr[g]..graph_ptr[g+1] of h (S, d): (graphs, d).

    Raises ModelError for an empty graph, which has no mean and no maximum.
    """
    sizes = graph_ptr.diff()
    if len(sizes) and int(sizes.min()) == 0:
        raise ModelError(f"graph {int(sizes.argmin())} of the batch has no nodes; drop empty graphs before training")
    graph = torch.repeat_interleave(torch.arange(len(sizes)), sizes.cpu()).to(h.device)  # (S,)
    if pool == "max":
        index = graph.unsqueeze(1).expand_as(h)
        return h.new_full((len(sizes), h.shape[1]), -torch.inf).scatter_reduce(0, index, h, "amax")
    summed = h.new_zeros(len(sizes), h.shape[1]).index_add(0, graph, h)
    return summed if pool == "sum" else summed / sizes.to(h.device).unsqueeze(1)
