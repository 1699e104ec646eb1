"""`gatedgcn`: gated message passing (Bresson & Laurent 2017) on the induced subgraph, the paper's own example."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gmn_train.model.encoders.messages import MessageEncoder

if TYPE_CHECKING:
    from gmn_train.settings.model_settings import ModelConfig


def gated_convolution(width: int, edge_features: bool) -> nn.Module:
    """PyG's layer of that name, `GatedGraphConv`, is another model (a GRU); this one is GatedGCN."""
    from torch_geometric.nn import ResGatedGraphConv  # two seconds of import that other models need not wait for

    convolution: nn.Module = ResGatedGraphConv(width, width, edge_dim=width if edge_features else None)
    return convolution


def gated_messages(convolution: nn.Module, x: Tensor, edge_index: Tensor, edges: Tensor | None) -> Tensor:
    out: Tensor = convolution(x, edge_index, edges)
    return out


def make(config: "ModelConfig", edge_features: bool) -> MessageEncoder:
    """Gates weigh every message by both endpoints and the edge. Several times the cost of `local`."""
    layers = [gated_convolution(config.width, edge_features) for _ in range(config.encoder_layers)]
    return MessageEncoder(config.width, layers, gated_messages)
