"""`gine`: GIN with edge features (Hu et al. 2020) on the induced subgraph."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gmn_train.model.encoders.messages import MessageEncoder

if TYPE_CHECKING:
    from gmn_train.settings.model_settings import ModelConfig


def gine_convolution(width: int, edge_features: bool) -> nn.Module:  # noqa: ARG001 - zeros stand in where there are none
    """MLP(x + Σ ReLU(x_neighbour + edge))."""
    from torch_geometric.nn import GINEConv

    convolution: nn.Module = GINEConv(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)))
    return convolution


def gine_messages(convolution: nn.Module, x: Tensor, edge_index: Tensor, edges: Tensor | None) -> Tensor:
    if edges is None:
        edges = x.new_zeros(1, x.shape[1]).expand(edge_index.shape[1], -1)
    out: Tensor = convolution(x, edge_index, edges)
    return out


def make(config: "ModelConfig", edge_features: bool) -> MessageEncoder:
    """Sums, not means: it counts neighbours inside the token. Several times the cost of `local`."""
    layers = [gine_convolution(config.width, edge_features) for _ in range(config.encoder_layers)]
    return MessageEncoder(config.width, layers, gine_messages)
