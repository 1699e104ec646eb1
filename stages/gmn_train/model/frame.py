"""What every model here shares: features in by one projection, predictions out by one head.

GMN and the baselines differ only in what stands between, so a comparison compares just that.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gmn_pipeline.errors import ModelError
from gmn_pipeline.tables import load_code
from gmn_train.data.inputs import InputFacts, ModelInputs
from gmn_train.grains.grain import row_grain_here
from gmn_train.grains.rows import gather_rows
from gmn_train.model.layers.features import FeatureProjection
from gmn_train.model.layers.heads import GraphHead, LinkHead, NodeHead, pool_graphs
from gmn_train.model.message_passing.edge_states import EdgeStates, project_edge_states
from gmn_train.settings.model_settings import ModelConfig


@dataclass(frozen=True)
class ModelOutputs:
    """What a forward pass gives."""

    logits: Tensor
    """(items, outputs): nodes that were asked for, graphs, or pairs."""
    embeddings: Tensor
    """(B, d) nodes that were asked for; (graphs, d) for a graph task."""
    level_deltas: Tensor | None = None
    """(token BiMamba layers, m+1), with `explain`: the mean Δ that the tokens of each level receive."""


class GraphModel(nn.Module):
    """A model for inputs of a store that `facts` describes (`InputSource.facts`); subclasses have the `forward`."""

    takes_slices = False
    """Whether its layers know how to look beyond some rows of a graph that is cut over grains."""

    def __init__(self, config: ModelConfig, facts: InputFacts) -> None:
        super().__init__()
        self.config, self.facts = config, facts
        width = config.width
        self.project = FeatureProjection(
            width,
            facts.x_columns,
            facts.x_categories,
            facts.extra_columns,
            config.feature_mask,
            config.input_dropout,
            smooth=facts.smooth_columns,
            normed=facts.extra_columns - config.degree_columns if config.encoding_norm else 0,
        )
        edges = facts.edge_columns > 0
        self.project_edges = FeatureProjection(width, facts.edge_columns, facts.edge_categories) if edges else None
        self.head: NodeHead | GraphHead | LinkHead
        if facts.item == "graph":
            self.head = GraphHead(config, facts.outputs)
        else:
            self.head = (LinkHead if facts.item == "link" else NodeHead)(config, facts.outputs)

    def embed(self, inputs: ModelInputs) -> tuple[Tensor, EdgeStates | None]:
        """Node states (U, d), and edge states where there are edge features."""
        if isinstance(self.head, GraphHead) and inputs.targets < inputs.scanned:
            raise ModelError("a graph task needs whole graphs; build the inputs with whole_inputs")
        extra = [e for e in (inputs.encodings, inputs.degrees) if e is not None]
        h: Tensor = self.project(inputs.x, extra, inputs.rows, inputs.entries)
        if self.project_edges is None or inputs.edge_attr is None:
            return h, None
        return h, project_edge_states(self.project_edges, inputs.edge_attr, self.facts.edge_categories)

    def predict(self, h: Tensor, inputs: ModelInputs, deltas: Tensor | None = None) -> ModelOutputs:
        """From the last node states (S, d) to the task's outputs."""
        if isinstance(self.head, GraphHead):
            pooled = pool_graphs(h, inputs.order.graph_ptr, self.head.pool)  # (graphs, d)
            return ModelOutputs(self.head(pooled), pooled, deltas)
        h = h[: inputs.targets]  # (B, d)
        if isinstance(self.head, LinkHead):
            if inputs.pairs is None:
                raise ModelError("a link task needs pairs; pass pairs=(K, 2) node ids when building the inputs")
            if (grain := row_grain_here()) is not None:
                return ModelOutputs(self.head(gather_rows(h, grain), inputs.pairs), h, deltas)
            return ModelOutputs(self.head(h, inputs.pairs), h, deltas)
        return ModelOutputs(self.head(h), h, deltas)


def make_graph_model(config: ModelConfig, facts: InputFacts) -> GraphModel:
    """The model that `config.name` names."""
    model: GraphModel = load_code(config.model.code)(config, facts)
    return model


def graph_numbers(graph_ptr: Tensor, device: torch.device) -> Tensor:
    """Which graph each row belongs to, (S,), from borders (G+1,)."""
    sizes = graph_ptr.diff().cpu()
    return torch.repeat_interleave(torch.arange(len(sizes)), sizes).to(device)
