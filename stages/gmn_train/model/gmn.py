"""GMN: a Graph Mamba Network as a plain nn.Module.

features, encodings, degree -> projection -> [token block] -> node layers, token blocks between them -> head
"""

from dataclasses import replace
from math import ceil

import torch
from torch import Tensor, nn

from gmn_pipeline.errors import ModelError
from gmn_train.data.inputs import InputFacts, ModelInputs
from gmn_train.model.encoders import make_encoder
from gmn_train.model.frame import GraphModel, ModelOutputs
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.layers.node_layer import NodeLayer, make_norm
from gmn_train.model.layers.rowwise.finish import finish
from gmn_train.model.layers.rowwise.full_precision import full
from gmn_train.model.layers.token_block import TokenBlock
from gmn_train.model.message_passing.branches import make_branch
from gmn_train.model.message_passing.reach import pass_messages
from gmn_train.model.tables import ENCODERS
from gmn_train.settings.model_settings import ModelConfig


class GMN(GraphModel):
    """A Graph Mamba Network for inputs of a store that `facts` describes (`InputSource.facts`)."""

    takes_slices = True

    def __init__(self, config: ModelConfig, facts: InputFacts) -> None:
        super().__init__(config, facts)
        width, edges = config.width, facts.edge_columns > 0
        tokens = facts.tokens.m > 0  # m = 0: a node is its own only token, and node layers do all the work
        self.input_block = self._token_block() if tokens and config.reads_input_tokens else None
        self.layers = nn.ModuleList(self._node_layer(number) for number in range(1, config.node_layers + 1))
        blocks = {str(i): self._token_block() for i in config.blocks_after if tokens}
        self.blocks = nn.ModuleDict(blocks)
        self.block_norms = nn.ModuleDict({i: make_norm(config.norm, width) for i in blocks})
        jumps = config.head_reads == "all" and config.node_layers > 0
        self.jump = nn.Linear(width * (config.node_layers + 1), width) if jumps else None
        self.literal_branch = make_branch(config, edges) if config.mpnn_form == "literal" else None

    @property
    def _encoder_reads_edges(self) -> bool:
        return "edge_features" in ENCODERS[self.config.encoder].reads

    def _bimamba(self) -> BiMamba:
        # Without its own dropout: that would not be keyed by node in a token block, and is slower in a node layer.
        c = self.config
        return BiMamba(
            c.scanned_width,
            states=c.states,
            expand=max(c.expand, 1 / c.scanned_width),
            conv_width=c.conv_width,
            dt_rank=ceil(c.scanned_width / 16) if c.dt_rank is None else c.dt_rank,
            bidirectional=c.bidirectional,
            shared_A=c.shared_A,
            backend=c.scan_backend,
        )

    def _token_block(self) -> TokenBlock:
        c = self.config
        encoder = make_encoder(replace(c, width=c.scanned_width), self.facts.edge_columns > 0)
        layers = [self._bimamba() for _ in range(c.token_layers)]
        return TokenBlock(
            encoder,
            layers,
            self.facts.tokens,
            width=c.width,
            scan_width=c.scanned_width,
            edges=self._encoder_reads_edges and self.facts.edge_columns > 0,
            readout=c.readout,
            order=c.token_order,
            dropout=c.token_dropout,
        )

    def _node_layer(self, number: int) -> NodeLayer:
        c = self.config
        branch = make_branch(c, self.facts.edge_columns > 0) if c.mpnn_form == "sum" else None
        scan = self._bimamba() if number in c.scan_layers else None
        return NodeLayer(
            c.width,
            scan,
            branch,
            scan_width=c.scanned_width,
            residual=c.residual,
            norm=c.norm,
            activation=c.activation,
            ffn=c.ffn,
            dropout=c.dropout,
        )

    def forward(self, inputs: ModelInputs, *, explain: bool = False) -> ModelOutputs:
        """Predictions for inputs built by `whole_inputs` or `batch_inputs`.

        explain: also measure what the token scans select (`ModelOutputs.level_deltas`), at the cost of a second pass
        through the token blocks.

        Raises:
            ModelError: the inputs lack what the settings need, or were built for another model.
        """
        self._check(inputs)
        raw, edges = self.embed(inputs)  # (U, d)
        scanned_edges = None if edges is None else edges.first(inputs.near.edge_index.shape[1])
        # (edge rows, d), for encoders that read them
        edge_states = None if edges is None or not self._encoder_reads_edges else edges.of_all()
        deltas: list[Tensor] = []

        def read_tokens(block: TokenBlock, h: Tensor) -> Tensor:
            if explain:
                deltas.append(block.level_deltas(h, edge_states, inputs.tokens))
            return block(h, edge_states, inputs.tokens)  # type: ignore[no-any-return]

        h = raw
        if self.input_block is not None:
            h = replace_first(h, read_tokens(self.input_block, h))
        h = h[: inputs.scanned]  # (S, d)
        states = [h]
        for number, layer in enumerate(self.layers, 1):
            h = layer(h, inputs.order, inputs.near, scanned_edges)
            if str(number) in self.blocks:
                read = read_tokens(self.blocks[str(number)], h)  # type: ignore[arg-type]
                update = finish(self.block_norms[str(number)], read, None, self.config.dropout, self.training)
                h = replace_first(h, h[: len(update)] + update)
            states.append(h)
        if self.jump is not None:
            h = full(self.jump(torch.cat(states, 1)))
        if self.literal_branch is not None:
            h = h + pass_messages(self.literal_branch, raw[: inputs.scanned], inputs.near, scanned_edges)
        return self.predict(h, inputs, torch.cat(deltas) if deltas else None)

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


def replace_first(h: Tensor, new: Tensor) -> Tensor:
    """h (U, d) with its first rows replaced by `new` (B, d)."""
    return new if len(new) == len(h) else torch.cat([new, h[len(new) :]])
