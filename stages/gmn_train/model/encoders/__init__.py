"""Token encoders: φ of Algorithm 1, from the states of a token's nodes to one vector.

An encoder is an nn.Module with `prepare(h, edge_states)` (done once per node, before tokens are cut into chunks) and
`forward(chunk, *prepared)` -> (T, d). A new one is a file and a line in `model.tables.ENCODERS`.

| name | sees | cost |
|---|---|---|
| mean | which nodes | one sparse product |
| local | nodes and links | one fused kernel |
| gatedgcn, gine | nodes, links, edge features | PyG layers on every token slot, much memory |
| rwf | nodes, links, edge features, order of visits | a convolution over every walk step |

Forward and backward on Minesweeper at 4/4/2, width 64, two threads: mean 20 ms, local 94 ms, gine 2.3 s, rwf 2.9 s,
gatedgcn 4.7 s.
"""

from typing import TYPE_CHECKING

from gmn_pipeline.tables import load_code
from gmn_train.model.tables import ENCODERS

if TYPE_CHECKING:
    from torch import nn

    from gmn_train.settings.model_settings import ModelConfig


def make_encoder(config: "ModelConfig", edge_features: bool) -> "nn.Module":
    """The encoder that `config.encoder` names."""
    encoder: nn.Module = load_code(ENCODERS[config.encoder].code)(config, edge_features)
    return encoder
