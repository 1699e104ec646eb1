"""`mean`: projected node states, averaged over the token. Sees which nodes are near, not how they are linked."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gmn_train.data.token_chunks import TokenChunk
from gmn_train.model.encoders.pooling import pool_tokens

if TYPE_CHECKING:
    from gmn_train.settings.model_settings import ModelConfig


class MeanEncoder(nn.Module):
    """Mean over u in the token of W h_u. The cheapest encoder: one sparse product."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)

    def prepare(self, h: Tensor, edge_states: Tensor | None) -> tuple[Tensor, ...]:  # noqa: ARG002
        """What is computed once per node: (U, d)."""
        return (self.project(h),)

    def forward(self, chunk: TokenChunk, projected: Tensor) -> Tensor:
        """(T, d)"""
        return pool_tokens(projected, chunk)


def make(config: "ModelConfig", edge_features: bool) -> MeanEncoder:  # noqa: ARG001
    return MeanEncoder(config.width)
