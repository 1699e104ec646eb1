"""GMN: a Graph Mamba Network as a plain nn.Module.

features, encodings, degree -> projection -> [token block] -> node layers, token blocks between them -> head
"""

from dataclasses import dataclass
from math import ceil

import torch
from torch import Tensor, nn

from gmn_pipeline.errors import ModelError
from gmn_train.model.bimamba import BiMamba
from gmn_train.model.branches import make_branch
from gmn_train.model.config import ModelConfig
from gmn_train.model.encoders import make_encoder
from gmn_train.model.features import FeatureProjection
from gmn_train.model.heads import GraphHead, LinkHead, NodeHead, pool_graphs
from gmn_train.model.inputs import InputFacts, ModelInputs
from gmn_train.model.node_layer import NodeLayer
from gmn_train.model.quick_dropout import quick_dropout
from gmn_train.model.token_block import TokenBlock


@dataclass(frozen=True)
class GMNOutputs:
    """What a forward pass gives."""

    logits: Tensor
    """(items, outputs): nodes that were asked for, graphs, or pairs."""
    embeddings: Tensor
    """(B, d) nodes that were asked for; (graphs, d) for a graph task."""
    level_deltas: Tensor | None = None
    """(token BiMamba layers, m+1), with `explain`: the mean Δ that the tokens of each level receive."""


class GMN(nn.Module):
    """A Graph Mamba Network for inputs of a store that `facts` describes (`InputSource.facts`)."""

    def __init__(self, config: ModelConfig, facts: InputFacts) -> None:
        super().__init__()
        self.config, self.facts = config, facts
        width, edges = config.width, facts.edge_columns > 0
        self.project = FeatureProjection(
            width, facts.x_columns, facts.x_categories, facts.extra_columns, config.feature_mask
        )
        self.project_edges = FeatureProjection(width, facts.edge_columns, facts.edge_categories) if edges else None
        tokens = facts.tokens.m > 0  # m = 0: a node is its own only token, and node layers do all the work
        self.input_block = self._token_block() if tokens and config.reads_input_tokens else None
        self.layers = nn.ModuleList(self._node_layer() for _ in range(config.node_layers))
        blocks = {str(i): self._token_block() for i in config.blocks_after if tokens}
        self.blocks = nn.ModuleDict(blocks)
        self.block_norms = nn.ModuleDict({i: nn.LayerNorm(width) for i in blocks})
        self.literal_branch = make_branch(config.mpnn, width, edges) if config.mpnn_form == "literal" else None
        self.head: NodeHead | GraphHead | LinkHead
        if facts.level == "graph":
            self.head = GraphHead(width, facts.outputs, config.dropout, config.pool)
        else:
            self.head = (LinkHead if facts.level == "link" else NodeHead)(width, facts.outputs, config.dropout)

    def _bimamba(self) -> BiMamba:
        # Without its own dropout: that would not be keyed by node in a token block, and is slower in a node layer.
        c = self.config
        return BiMamba(
            c.width,
            states=c.states,
            expand=max(c.expand, 1 / c.width),
            conv_width=c.conv_width,
            dt_rank=ceil(c.width / 16) if c.dt_rank is None else c.dt_rank,
            bidirectional=c.bidirectional,
            shared_A=c.shared_A,
            backend=c.scan_backend,
        )

    def _token_block(self) -> TokenBlock:
        c = self.config
        encoder = make_encoder(
            c.encoder,
            c.width,
            layers=c.encoder_layers,
            window=c.rwf_window,
            edge_features=self.facts.edge_columns > 0,
        )
        layers = [self._bimamba() for _ in range(c.token_layers)]
        return TokenBlock(
            encoder, layers, self.facts.tokens, readout=c.readout, order=c.token_order, dropout=c.token_dropout
        )

    def _node_layer(self) -> NodeLayer:
        c = self.config
        branch = make_branch(c.mpnn, c.width, self.facts.edge_columns > 0) if c.mpnn_form == "sum" else None
        scan = self._bimamba() if c.node_scan else None
        return NodeLayer(c.width, scan, branch, residual=c.residual, norm=c.norm, ffn=c.ffn, dropout=c.dropout)

    def forward(self, inputs: ModelInputs, *, explain: bool = False) -> GMNOutputs:
        """Predictions for inputs built by `whole_inputs` or `batch_inputs`.

        explain: also measure what the token scans select (`GMNOutputs.level_deltas`), at the cost of a second pass
        through the token blocks.

        Raises:
            ModelError: the inputs lack what the settings need, or were built for another model.
        """
        self._check(inputs)
        extra = [e for e in (inputs.encodings, inputs.log_degree) if e is not None]
        raw = self.project(inputs.x, extra, inputs.rows)  # (U, d)
        edge_states = None  # (edge rows, d)
        if self.project_edges is not None and inputs.edge_attr is not None:
            edge_states = self.project_edges(inputs.edge_attr, [], len(inputs.edge_attr))
        scanned_edges = None if edge_states is None else edge_states[: inputs.near.edge_index.shape[1]]  # (E, d)
        deltas: list[Tensor] = []

        def read_tokens(block: TokenBlock, h: Tensor) -> Tensor:
            if explain:
                deltas.append(block.level_deltas(h, edge_states, inputs.tokens))
            return block(h, edge_states, inputs.tokens)  # type: ignore[no-any-return]

        h = raw
        if self.input_block is not None:
            h = replace_first(h, read_tokens(self.input_block, h))
        h = h[: inputs.scanned]  # (S, d)
        for number, layer in enumerate(self.layers, 1):
            h = layer(h, inputs.order, inputs.near, scanned_edges)
            if str(number) in self.blocks:
                update = self.block_norms[str(number)](read_tokens(self.blocks[str(number)], h))  # type: ignore[arg-type]
                update = quick_dropout(update, self.config.dropout, self.training)
                h = replace_first(h, h[: len(update)] + update)
        if self.literal_branch is not None:
            h = h + self.literal_branch(raw[: inputs.scanned], inputs.near, scanned_edges)
        return self._predict(h, inputs, torch.cat(deltas) if deltas else None)

    def _predict(self, h: Tensor, inputs: ModelInputs, deltas: Tensor | None) -> GMNOutputs:
        if isinstance(self.head, GraphHead):
            pooled = pool_graphs(h, inputs.order.graph_ptr, self.head.pool)  # (graphs, d)
            return GMNOutputs(self.head(pooled), pooled, deltas)
        h = h[: inputs.targets]  # (B, d)
        if isinstance(self.head, LinkHead):
            if inputs.pairs is None:
                raise ModelError("a link task needs pairs; pass pairs=(K, 2) node ids when building the inputs")
            return GMNOutputs(self.head(h, inputs.pairs), h, deltas)
        return GMNOutputs(self.head(h), h, deltas)

    def _check(self, inputs: ModelInputs) -> None:
        if (self.input_block is not None or self.blocks) and not inputs.has_tokens:
            raise ModelError("the model reads tokens and the inputs have none; build them with tokens=True")
        if inputs.settings.m > self.facts.tokens.m:
            raise ModelError(
                f"the inputs have tokens up to level {inputs.settings.m}, the model was made for "
                f"{self.facts.tokens.m}; use a smaller view of the store, or another model"
            )
        if self.blocks and inputs.scanned < inputs.rows:
            raise ModelError(
                "token blocks between layers need the states of all token nodes; build the batch with scan_context=True"
            )
        if isinstance(self.head, GraphHead) and inputs.targets < inputs.scanned:
            raise ModelError("a graph task needs whole graphs; build the inputs with whole_inputs")


def replace_first(h: Tensor, new: Tensor) -> Tensor:
    """h (U, d) with its first rows replaced by `new` (B, d)."""
    return new if len(new) == len(h) else torch.cat([new, h[len(new) :]])
