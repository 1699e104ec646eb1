"""Slow twin of stage one's tokens: walks in Python integers, unions in lists, subgraphs by networkx."""

from dataclasses import dataclass

import networkx as nx

from gmn_pipeline import Graph, TokenSettings
from gmn_pipeline.counter_random import Purpose
from tests.reference.counter_random import bounded, draw


@dataclass(frozen=True)
class Token:
    level: int
    repeat: int
    nodes: list[int]
    """By first visit, the token's own node first."""
    edges: list[tuple[int, int]]
    """Local index pairs by (larger, smaller) index; of a directed pair the edge to the larger one first."""
    walks: list[list[int]]
    """Local indices, the start left out."""


def neighbours(graph: Graph, node: int) -> list[int]:
    return graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()


def walk(graph: Graph, settings: TokenSettings, node: int, level: int, repeat: int, number: int) -> list[int]:
    """One walk of `level` steps from `node`, the start left out."""
    path, before, here = [], None, node
    for step in range(level):
        bits = draw(settings.seed, Purpose.WALK, node, level, repeat, number, step)
        choices = neighbours(graph, here)
        if settings.walk == "non-backtracking" and before is not None and choices:
            choices = [c for c in choices if c != before] or [before]
        there = choices[bounded(bits, len(choices))] if choices else here
        before, here = here, there
        path.append(here)
    return path


def token(graph: Graph, settings: TokenSettings, node: int, level: int, repeat: int) -> Token:
    """The token (node, level, repeat)."""
    paths = [walk(graph, settings, node, level, repeat, number) for number in range(settings.M if level else 0)]
    nodes = list(dict.fromkeys([node, *(u for path in paths for u in path)]))
    local = {u: i for i, u in enumerate(nodes)}
    whole = nx.DiGraph() if graph.directed else nx.Graph()
    whole.add_nodes_from(range(graph.num_nodes))
    whole.add_edges_from((u, w) for u in range(graph.num_nodes) for w in neighbours(graph, u))
    pairs = [(local[u], local[w]) for u, w in whole.subgraph(nodes).edges]
    if not graph.directed:
        pairs = [(min(p), max(p)) for p in pairs]
    edges = sorted(pairs, key=lambda p: (max(p), min(p), p[0] > p[1]))
    return Token(level, repeat, nodes, edges, [[local[u] for u in path] for path in paths])


def sequence(graph: Graph, settings: TokenSettings, node: int) -> list[Token]:
    """A node's tokens: levels m..1 with s repeats each, then level 0."""
    levels = [(level, repeat) for level in range(settings.m, 0, -1) for repeat in range(settings.s)]
    return [token(graph, settings, node, level, repeat) for level, repeat in [*levels, (0, 0)]]
