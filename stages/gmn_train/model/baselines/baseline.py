"""The neighbours' models in the same frame: same features, head, splits, optimiser. Layers are PyG's own.

mlp                   h <- h + dropout(ReLU(norm(W h)))
gcn, gatedgcn, gin    h <- h + dropout(ReLU(norm(convolution(h)))), as Dwivedi et al. (2020) have them
gps, gps-performer    GPSConv around the convolution that `mpnn` names, with full or Performer attention
"""

from torch import Tensor, nn
from torch.nn.functional import relu

from gmn_pipeline.tables import load_code
from gmn_train.data.inputs import InputFacts, ModelInputs
from gmn_train.model.frame import GraphModel, ModelOutputs, graph_numbers
from gmn_train.model.layers.node_layer import make_norm
from gmn_train.model.layers.rowwise.quick_dropout import quick_dropout
from gmn_train.model.tables import BRANCHES, HEADS
from gmn_train.settings.model_settings import ModelConfig


def make_convolution(name: str, width: int, edge_features: bool) -> nn.Module:
    """PyG's layer of the kind that a branch's name says."""
    code = BRANCHES[name].convolution
    assert code is not None, "check_gps refuses other branches"
    convolution: nn.Module = load_code(code)(width, edge_features)
    return convolution


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
        convolution = None if config.mpnn == "none" else make_convolution(config.mpnn, config.width, edge_features)
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
        c, edges, parts = self.config, self.facts.edge_columns > 0, self.config.model.parts
        if "attention" in parts:
            return GpsLayer(c, parts["attention"], edges)
        name = parts.get("convolution")
        return PlainLayer(nn.Linear(c.width, c.width) if name is None else make_convolution(name, c.width, edges), c)

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
