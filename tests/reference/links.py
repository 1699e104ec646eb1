"""Slow twin of `gmn_prep.datasets.links`: sets and Python integers, as the definition reads."""

from itertools import pairwise

from gmn_pipeline import Graph
from tests.reference.counter_random import bounded, draw

SPLIT, LINKS = 9, 13


def hold_out(graph: Graph, seed: int, tries: int) -> tuple[set[tuple[int, int]], list[tuple[int, int, int, int]]]:
    """The target edges, smaller id first, and the items as (u, v, label, part): targets first, in order."""
    slots = zip(graph.slot_sources.tolist(), graph.indices.tolist(), strict=True)
    edges = sorted({(min(u, v), max(u, v)) for u, v in slots if u != v})
    order = sorted(range(len(edges)), key=lambda e: draw(seed, SPLIT, 0, e))
    train, val = round(0.85 * len(edges)), round(0.9 * len(edges))
    part = dict.fromkeys(order[:train], 1) | dict.fromkeys(order[train:val], 2) | dict.fromkeys(order[val:], 3)
    asked = sorted(order[:train], key=lambda e: draw(seed, LINKS, 0, e))[: round(0.3 * train)]
    targets = sorted(set(order[train:]) | set(asked))

    items, unlinked = [], []
    taken = set(edges)
    for i, e in enumerate(targets):
        u, v = edges[e]
        items.append((v, u, 1, part[e]) if draw(seed, LINKS, 1, i) & 1 else (u, v, 1, part[e]))
        first, last = graph_around(graph, u)
        for attempt in range(tries):
            a, b = (first + bounded(draw(seed, LINKS, 2, i, attempt, end), last - first) for end in (0, 1))
            if a != b and (min(a, b), max(a, b)) not in taken:
                taken.add((min(a, b), max(a, b)))
                unlinked.append((a, b, 0, part[e]))
                break
    return {edges[e] for e in targets}, items + unlinked


def graph_around(graph: Graph, node: int) -> tuple[int, int]:
    """First node of the graph that `node` is in, and one past its last."""
    if graph.graph_ptr is None:
        return 0, graph.num_nodes
    borders = graph.graph_ptr.tolist()
    return next((a, b) for a, b in pairwise(borders) if a <= node < b)
