"""From node states to predictions: per node, per graph or per pair of nodes."""

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from gmn_pipeline.errors import ModelError
from gmn_train.model.layers.rowwise.full_precision import full
from gmn_train.model.layers.rowwise.norms import LayerNorm

if TYPE_CHECKING:
    from gmn_train.settings.model_settings import ModelConfig

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}
Pool = Literal["mean", "max", "sum"]


class NodeHead(nn.Module):
    """(B, d) -> (B, outputs)."""

    def __init__(self, config: "ModelConfig", outputs: int) -> None:
        super().__init__()
        self.predict = predictor(config, config.width, outputs)

    def forward(self, h: Tensor) -> Tensor:
        return full(self.predict(h))


class GraphHead(nn.Module):
    """(S, d) with borders -> (graphs, outputs)."""

    def __init__(self, config: "ModelConfig", outputs: int) -> None:
        super().__init__()
        self.pool: Pool = config.pool
        self.predict = predictor(config, config.width, outputs)

    def forward(self, pooled: Tensor) -> Tensor:
        return full(self.predict(pooled))


class LinkHead(nn.Module):
    """States of both ends, (pairs, d) each -> (pairs, outputs); the order of a pair makes no difference."""

    def __init__(self, config: "ModelConfig", outputs: int) -> None:
        super().__init__()
        self.predict = predictor(config, 2 * config.width, outputs)

    def forward(self, h: Tensor, pairs: Tensor) -> Tensor:
        a, b = h[pairs[:, 0]], h[pairs[:, 1]]
        return full(self.predict(torch.cat([a * b, a + b], 1)))


def predictor(config: "ModelConfig", width: int, outputs: int) -> nn.Sequential:
    """LayerNorm, hidden layers, and the last linear map."""
    hidden: list[nn.Module] = []
    for _ in range(config.head_layers):
        hidden += [nn.Linear(width, width), ACTIVATIONS[config.activation](), nn.Dropout(config.dropout)]
    return nn.Sequential(LayerNorm(width), *hidden, nn.Linear(width, outputs))


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
