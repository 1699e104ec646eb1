"""`mean`: projected node states, averaged over the token. Sees which nodes are near, not how they are linked."""

from collections.abc import Sequence

from torch import Tensor, nn

from gmn_pipeline.store.view import Part
from gmn_train.data.token_chunks import TokenChunk
from gmn_train.model.encoders.pooling import pool_tokens


class MeanEncoder(nn.Module):
    """Mean over u in the token of W h_u. The cheapest encoder: one sparse product."""

    parts: Sequence[Part] = ()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)

    def prepare(self, h: Tensor, edge_states: Tensor | None) -> tuple[Tensor, ...]:  # noqa: ARG002
        """What is computed once per node: (U, d)."""
        return (self.project(h),)

    def forward(self, chunk: TokenChunk, projected: Tensor) -> Tensor:
        """(T, d)"""
        return pool_tokens(projected, chunk)
