"""Slow twins of the token encoders: one token at a time, dense adjacency, plain loops."""

import networkx as nx
import torch
from torch import Tensor

from gmn_pipeline import Graph
from tests.reference.tokens import Token


def arcs(token: Token, directed: bool) -> list[tuple[int, int]]:
    """Local (source, target) of every message: both ways of an undirected edge, a loop once."""
    return [arc for a, b in token.edges for arc in ([(a, b)] if directed or a == b else [(a, b), (b, a)])]


def first_slot(graph: Graph, u: int, w: int) -> int:
    """The first CSR slot of the edge u -> w."""
    row = graph.indices[graph.indptr[u] : graph.indptr[u + 1]].tolist()
    return int(graph.indptr[u]) + row.index(w)


def mean_token(token: Token, projected: Tensor) -> Tensor:
    return torch.stack([projected[u] for u in token.nodes]).mean(0)


def local_token(token: Token, directed: bool, own: Tensor, near: Tensor, root: Tensor) -> Tensor:
    """Mean over u of ReLU(own_u + mean of near over nodes with an edge to u + root_v)."""
    total = torch.zeros_like(own[0])
    for i, u in enumerate(token.nodes):
        sources = [near[token.nodes[a]] for a, b in arcs(token, directed) if b == i]
        message = torch.stack(sources).mean(0) if sources else torch.zeros_like(own[0])
        total = total + torch.relu(own[u] + message + root[token.nodes[0]])
    return total / len(token.nodes)


def edge_vectors(token: Token, graph: Graph, edge_states: Tensor | None) -> dict[tuple[int, int], Tensor]:
    """States of the edges by local arc; none where there are no edge features."""
    if edge_states is None:
        return {}
    pairs = arcs(token, graph.directed)
    return {(a, b): edge_states[first_slot(graph, token.nodes[a], token.nodes[b])] for a, b in pairs}


def gated_token(token: Token, graph: Graph, projected: Tensor, edge_states: Tensor | None, convs: list) -> Tensor:
    """x_i <- x_i + ReLU(S x_i + Σ_j sigmoid(K [x_i, e] + Q [x_j, e]) * V [x_j, e]), then the mean."""
    x, edges = [projected[u] for u in token.nodes], edge_vectors(token, graph, edge_states)
    for c in convs:
        sums = []
        for i, x_i in enumerate(x):
            total = c.lin_skip(x_i) + c.bias
            for a, b in arcs(token, graph.directed):
                if b == i:
                    e = [edges[a, b]] if edges else []
                    gate = torch.sigmoid(c.lin_key(torch.cat([x_i, *e])) + c.lin_query(torch.cat([x[a], *e])))
                    total = total + gate * c.lin_value(torch.cat([x[a], *e]))
            sums.append(total)
        x = [x_i + torch.relu(z) for x_i, z in zip(x, sums, strict=True)]
    return torch.stack(x).mean(0)


def gine_token(token: Token, graph: Graph, projected: Tensor, edge_states: Tensor | None, convs: list) -> Tensor:
    """x_i <- x_i + ReLU(MLP(x_i + Σ_j ReLU(x_j + e))), then the mean."""
    x, edges = [projected[u] for u in token.nodes], edge_vectors(token, graph, edge_states)
    for c in convs:
        sums = []
        for i, x_i in enumerate(x):
            near = [torch.relu(x[a] + edges.get((a, b), 0)) for a, b in arcs(token, graph.directed) if b == i]
            sums.append(c.nn(x_i + sum(near, torch.zeros_like(x_i))))
        x = [x_i + torch.relu(z) for x_i, z in zip(x, sums, strict=True)]
    return torch.stack(x).mean(0)


def walk_features(token: Token, path: list[int], window: int) -> list[list[int]]:
    """Identity and adjacency windows at every step of a walk given with its start, adjacency by networkx."""
    linked = nx.Graph(token.edges)
    rows = []
    for i, here in enumerate(path):
        identity = [int(i >= j and path[i - j] == here) for j in range(1, window + 1)]
        adjacency = [int(i >= j and linked.has_edge(path[i - j], here)) for j in range(2, window + 1)]
        rows.append(identity + adjacency)
    return rows


def rwf_token(token: Token, graph: Graph, projected: Tensor, edge_states: Tensor | None, encoder) -> Tensor:
    """Every walk of a token through the encoder's weights, step by step."""
    found = []
    for path in [[0, *walk] for walk in token.walks] or [[0]]:
        windows = walk_features(token, path, encoder.window)
        steps = []
        for i, here in enumerate(path):
            x = projected[token.nodes[here]] + encoder.windows(torch.tensor(windows[i], dtype=projected.dtype))
            edges = edge_vectors(token, graph, edge_states)
            if i and (path[i - 1], here) in edges:
                x = x + edges[path[i - 1], here]
            steps.append(torch.relu(x))
        weight, bias = encoder.convolution.weight, encoder.convolution.bias  # (d, d, taps), (d,)
        half, out = weight.shape[2] // 2, []
        for i in range(len(steps)):
            z = bias
            for tap in range(weight.shape[2]):
                if 0 <= i + tap - half < len(steps):
                    z = z + weight[:, :, tap] @ steps[i + tap - half]
            out.append(torch.relu(z))
        found.append(torch.stack(out).mean(0))
    return encoder.out(torch.stack(found).mean(0))
