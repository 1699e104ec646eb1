"""Input features, encodings and degree, or edge features, projected to the model's width."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from gmn_pipeline.errors import ModelError
from gmn_train.data.inputs.entries import FeatureEntries
from gmn_train.model.layers.rowwise.full_precision import full
from gmn_train.model.layers.rowwise.norms import BatchNorm
from gmn_train.model.layers.rowwise.quick_dropout import quick_dropout

SMOOTH_START = 0.1
"""Weights of smooth columns begin at this share of the others'."""


class FeatureProjection(nn.Module):
    """Float columns by one linear map, each column of categories by an embedding, and their sum; once per node.

    Args:
        columns: float features.
        categories: classes of each column of categorical features, instead of float ones.
        extra: further float columns that are never masked: encodings and degree.
        mask: share of rows whose features are hidden in training.
        dropout: share of single float features that are hidden in training, the others scaled up.
        smooth: of the extra columns, the first ones that are smooth over the graph: Laplacian eigenvectors. They start
            with small weights. Message passing keeps what is smooth and wears down what tells neighbours apart, so that
            with full weights features drown after a dozen layers, and nothing is learned.
        normed: of the extra columns, the first ones that go through a BatchNorm: encodings.
    """

    def __init__(
        self,
        width: int,
        columns: int,
        categories: tuple[int, ...] | None,
        extra: int = 0,
        mask: float = 0.0,
        dropout: float = 0.0,
        smooth: int = 0,
        normed: int = 0,
    ) -> None:
        super().__init__()
        self.columns, self.categories, self.extra = columns, categories, extra
        self.mask, self.dropout = mask, dropout
        floats = extra + (0 if categories else columns)
        self.linear = nn.Linear(floats, width) if floats else None
        if self.linear is not None and smooth:
            first = floats - extra
            with torch.no_grad():
                self.linear.weight[:, first : first + smooth] *= SMOOTH_START
        self.norm = BatchNorm(normed) if normed else None
        self.constant = None if floats else nn.Parameter(torch.randn(width) * 0.1)  # without any input: one vector
        self.embeddings = nn.ModuleList(nn.Embedding(max(c, 1), width) for c in categories or ())

    def forward(
        self, x: Tensor | None, extra: list[Tensor], rows: int, entries: FeatureEntries | None = None
    ) -> Tensor:
        """x (rows, columns) float or int64 categories, extra columns (rows, k) each, to (rows, d).

        entries: of x, where it is mostly zeros.
        """
        self.check(x, extra)
        shown = None
        if self.training and self.mask and x is not None:
            shown = (torch.rand(rows, 1, device=x.device) >= self.mask).to(self.dtype)  # (rows, 1)
        floats = list(extra)
        if self.norm is not None:
            floats[0] = full(self.norm(floats[0].to(self.dtype)))
        if entries is not None and self.linear is not None:
            return self._project_entries(entries, shown, floats)
        if x is not None and self.categories is None:
            x = quick_dropout(x, self.dropout, self.training)
            floats.insert(0, x if shown is None else x * shown)
        if self.linear is not None:
            h = full(self.linear(torch.cat([f.to(self.dtype) for f in floats], 1)))
        else:
            h = self.constant.expand(rows, -1)  # type: ignore[union-attr]
        if self.embeddings and x is not None:
            embedded = self.embeddings[0](x[:, 0])  # (rows, d)
            for i, embedding in enumerate(self.embeddings[1:], 1):
                embedded = embedded + embedding(x[:, i])
            h = h + (embedded if shown is None else embedded * shown)
        return h

    def _project_entries(self, entries: FeatureEntries, shown: Tensor | None, extra: list[Tensor]) -> Tensor:
        """The same sum, with zeros left out of products and draws."""
        assert self.linear is not None
        weight = self.linear.weight
        kept = entries.with_values(quick_dropout(entries.matrix.values(), self.dropout, self.training))
        h = kept.product(weight[:, : self.columns])  # (rows, d)
        h = h if shown is None else h * shown
        if not extra:
            return h + self.linear.bias
        others = torch.cat([f.to(self.dtype) for f in extra], 1)
        return h + full(functional.linear(others, weight[:, self.columns :], self.linear.bias))

    @property
    def dtype(self) -> torch.dtype:
        return self.constant.dtype if self.linear is None else self.linear.weight.dtype  # type: ignore[union-attr]

    def check(self, x: Tensor | None, extra: list[Tensor]) -> None:
        """ModelError unless the columns are those the projection was made for."""
        columns = 0 if x is None else x.shape[1]
        wanted = len(self.categories) if self.categories else self.columns
        if columns != wanted or sum(e.shape[1] for e in extra) != self.extra:
            raise ModelError(
                f"the inputs have {columns} feature columns and {sum(e.shape[1] for e in extra)} extra ones; "
                f"the model was made for {wanted} and {self.extra}: build both from one store and one config"
            )
        if x is not None and x.is_floating_point() == bool(self.categories):
            raise ModelError(
                f"features are {x.dtype}; the model was made for {'int64' if self.categories else 'floats'}"
            )
