"""Tokens as a PyG transform: they are sampled in memory and travel with the `Data`. For graphs that are small."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch_geometric.transforms import BaseTransform

from gmn_pipeline import Graph, TokenSettings
from gmn_pipeline.store.format.words import Walk


class AddTokens(BaseTransform):  # type: ignore[misc]
    """Adds the tokens of every node to a `Data`: the same tokens that `gmn.tokenize` would store.

    Edges go both ways unless `directed`; repeated ones count once, loops are left out, as in a store.

    Attributes, with L = 1 + m*s tokens per node in sequence order (PyG's loaders batch them as they are):

    - `token_index` (N,): nodes of all tokens, one token after the other
    - `token_sizes` (n*L,): nodes of each token
    - `token_edges` (E, 2): edges as pairs of places in their token's node list
    - `token_edge_sizes` (n*L,): edges of each token
    """

    def __init__(
        self,
        m: int = 4,
        M: int = 4,
        s: int = 2,
        *,
        walk: Walk = "uniform",
        seed: int = 0,
        directed: bool = False,
    ) -> None:
        self.settings, self.directed = TokenSettings(m, M, s, walk, seed), directed

    def forward(self, data: Any) -> Any:
        from gmn_prep.tokens.tokenizer import Tokenizer

        n = int(data.num_nodes or 0)
        edges = data.edge_index.cpu().numpy().T
        graph = Graph.from_edges(edges, n, directed=self.directed)
        with ThreadPoolExecutor(1) as pool:
            block = Tokenizer.of(graph, self.settings).block(0, n, pool)
        data.token_index = torch.from_numpy(block.nodes.astype(np.int64))
        data.token_sizes = torch.from_numpy(np.diff(block.node_ptr).astype(np.int64))
        data.token_edges = torch.from_numpy(block.edges.astype(np.int64))
        data.token_edge_sizes = torch.from_numpy(np.diff(block.edge_ptr).astype(np.int64))
        return data

    def __repr__(self) -> str:
        t = self.settings
        return f"AddTokens(m={t.m}, M={t.M}, s={t.s})"
