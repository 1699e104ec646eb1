"""PyG's convolutions behind one signature, with edge states (E, d) where the layer takes them."""

from torch import Tensor, nn

from gmn_train.model.encoders.gatedgcn import gated_convolution, gated_messages
from gmn_train.model.encoders.gine import gine_convolution, gine_messages


class Convolution(nn.Module):
    """What the three share: GPSConv resets the layer that it is given."""

    layer: nn.Module

    def reset_parameters(self) -> None:
        self.layer.reset_parameters()  # type: ignore[operator]


class GcnConvolution(Convolution):
    """GCNConv, which reads no edge features."""

    def __init__(self, width: int, edge_features: bool) -> None:  # noqa: ARG002
        super().__init__()
        from torch_geometric.nn import GCNConv

        self.layer = GCNConv(width, width)

    def forward(self, x: Tensor, edge_index: Tensor, edge_states: Tensor | None = None) -> Tensor:  # noqa: ARG002
        out: Tensor = self.layer(x, edge_index)
        return out


class GatedConvolution(Convolution):
    """ResGatedGraphConv."""

    def __init__(self, width: int, edge_features: bool) -> None:
        super().__init__()
        self.layer = gated_convolution(width, edge_features)

    def forward(self, x: Tensor, edge_index: Tensor, edge_states: Tensor | None = None) -> Tensor:
        return gated_messages(self.layer, x, edge_index, edge_states)


class GineConvolution(Convolution):
    """GINEConv."""

    def __init__(self, width: int, edge_features: bool) -> None:
        super().__init__()
        self.layer = gine_convolution(width, edge_features)

    def forward(self, x: Tensor, edge_index: Tensor, edge_states: Tensor | None = None) -> Tensor:
        return gine_messages(self.layer, x, edge_index, edge_states)
