"""Projected edge features: where many edges have the same features, as bonds do, they are projected once."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn


class EdgeStates(NamedTuple):
    """States of edges, by distinct features."""

    values: Tensor
    """(K, d)"""
    rows: Tensor | None
    """(edge rows,) int64: which of them an edge has; None: one each."""

    def first(self, count: int) -> "EdgeStates":
        """Those of the first edge rows."""
        return (
            EdgeStates(self.values[:count], None) if self.rows is None else EdgeStates(self.values, self.rows[:count])
        )

    def of_all(self) -> Tensor:
        """(edge rows, d): one for every edge."""
        return self.values if self.rows is None else self.values.index_select(0, self.rows)


def project_edge_states(project: nn.Module, features: Tensor, categories: tuple[int, ...] | None) -> EdgeStates:
    """Edge features (edge rows, columns) by `project`; equal rows of categories once."""
    if categories is None or len(features) == 0:
        return EdgeStates(project(features, [], len(features)), None)
    key = np.zeros(len(features), np.int64)
    for column, count in zip(features.cpu().numpy().T, categories, strict=True):
        key = key * max(count, 1) + column
    _, first, rows = np.unique(key, return_index=True, return_inverse=True)
    distinct = features[torch.from_numpy(first).to(features.device)]
    return EdgeStates(project(distinct, [], len(distinct)), torch.from_numpy(rows).to(features.device))
