"""The order in which nodes are scanned."""

import torch
from torch import Tensor


class NodeOrder:
    """The order in which nodes are scanned: `rows` (S,) by place, `places` (S,) by row, `graph_ptr` (G+1,) borders."""

    def __init__(self, rows: Tensor, graph_ptr: Tensor) -> None:
        self.rows, self.graph_ptr = rows, graph_ptr
        self.places = torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows), device=rows.device))
