"""The neighbours' models in the same frame: same features, head, splits, optimiser. Layers are PyG's own.

mlp                   h <- h + dropout(ReLU(norm(W h)))
gcn, gatedgcn, gin    h <- h + dropout(ReLU(norm(convolution(h)))), as Dwivedi et al. (2020) have them
gps, gps-performer    GPSConv around the convolution that `mpnn` names, with full or Performer attention
"""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.functional import relu

from gmn_train.data.inputs import InputFacts, ModelInputs
from gmn_train.model.encoders.gatedgcn import gated_convolution, gated_messages
from gmn_train.model.encoders.gine import gine_convolution, gine_messages
from gmn_train.model.frame import GraphModel, ModelOutputs, graph_numbers
from gmn_train.model.layers.node_layer import make_norm
from gmn_train.model.layers.rowwise.quick_dropout import quick_dropout
from gmn_train.model.tables import HEADS
from gmn_train.settings.model_settings import ModelConfig


class Convolution(nn.Module):
    """PyG's layer behind one signature, with edge states (E, d) where the layer takes them."""

    def __init__(self, name: str, width: int, edge_features: bool) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        makers: dict[str, tuple[Callable[..., nn.Module], Callable[..., Tensor]]] = {
            "gcn": (lambda width, _: GCNConv(width, width), lambda layer, x, edges, _: layer(x, edges)),
            "gatedgcn": (gated_convolution, gated_messages),
            "gin": (gine_convolution, gine_messages),
            "gine": (gine_convolution, gine_messages),
        }
        make, self._convolve = makers[name]
        self.layer = make(width, edge_features)

    def forward(self, x: Tensor, edge_index: Tensor, edge_states: Tensor | None = None) -> Tensor:
        return self._convolve(self.layer, x, edge_index, edge_states)

    def reset_parameters(self) -> None:
        self.layer.reset_parameters()  # type: ignore[operator]


class PlainLayer(nn.Module):
    """See the module."""

    def __init__(self, mix: nn.Module, config: ModelConfig) -> None:
        super().__init__()
        self.mix, self.norm, self.dropout = mix, make_norm(config.norm, config.width), config.dropout

    def forward(self, h: Tensor, edge_index: Tensor, graph: Tensor, edge_states: Tensor | None) -> Tensor:  # noqa: ARG002
        mixed = self.mix(h) if isinstance(self.mix, nn.Linear) else self.mix(h, edge_index, edge_states)
        return h + quick_dropout(relu(self.norm(mixed)), self.dropout, self.training)


class GpsLayer(nn.Module):
    """PyG's GPSConv; attention stays within each graph."""

    def __init__(self, config: ModelConfig, attention: str, edge_features: bool) -> None:
        super().__init__()
        from torch_geometric.nn import GPSConv

        norms = {"batch": "batch_norm", "layer": "layer_norm", "none": None}
        convolution = None if config.mpnn == "none" else Convolution(config.mpnn, config.width, edge_features)
        self.layer = GPSConv(
            config.width,
            convolution,
            heads=HEADS,
            dropout=config.dropout,
            norm=norms[config.norm],
            attn_type=attention,
        )

    def forward(self, h: Tensor, edge_index: Tensor, graph: Tensor, edge_states: Tensor | None) -> Tensor:
        out: Tensor = self.layer(h, edge_index, graph, edge_states=edge_states)
        return out


class Baseline(GraphModel):
    """A baseline for inputs that `facts` describes; `config.name` says which."""

    def __init__(self, config: ModelConfig, facts: InputFacts) -> None:
        super().__init__(config, facts)
        self.layers = nn.ModuleList(self._layer() for _ in range(config.node_layers))

    def _layer(self) -> nn.Module:
        c, edges = self.config, self.facts.edge_columns > 0
        if c.name.startswith("gps"):
            return GpsLayer(c, "performer" if c.name == "gps-performer" else "multihead", edges)
        mix = nn.Linear(c.width, c.width) if c.name == "mlp" else Convolution(c.name, c.width, edges)
        return PlainLayer(mix, c)

    def forward(self, inputs: ModelInputs, *, explain: bool = False) -> ModelOutputs:  # noqa: ARG002 - no tokens here
        """Predictions for inputs built by `whole_inputs` or `batch_inputs`."""
        h, edges = self.embed(inputs)
        h = h[: inputs.scanned]  # (S, d)
        edge_index = inputs.near.edge_index
        graph = graph_numbers(inputs.order.graph_ptr, h.device)  # (S,)
        edge_states = None if edges is None else edges.first(edge_index.shape[1]).of_all()  # (E, d)
        for layer in self.layers:
            h = layer(h, edge_index, graph, edge_states)
        return self.predict(h, inputs)
