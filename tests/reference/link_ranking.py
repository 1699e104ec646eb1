"""The filtered mean reciprocal rank by its definition, one pair at a time."""

from collections.abc import Callable, Iterable

from gmn_pipeline import Graph


def reciprocal_ranks(
    graph: Graph, items: Iterable[int], score: Callable[[int, int], float], candidates: Callable[[int], Iterable[int]]
) -> list[float]:
    """1 / rank of each of `items` with label 1; candidates(item) are the nodes v' it may be ranked among."""
    assert graph.pairs is not None
    assert graph.y is not None
    positives = {(int(u), int(v)) for (u, v), label in zip(graph.pairs, graph.y, strict=True) if label == 1}
    found = []
    for item in items:
        if graph.y[item] != 1:
            continue
        u, v = (int(end) for end in graph.pairs[item])
        own, above, beside = score(u, v), 0, 0
        for other in candidates(item):
            if other == u or (u, other) in positives or (other, u) in positives:
                continue
            above += score(u, other) > own
            beside += score(u, other) == own
        found.append(1 / (1 + above + beside / 2))
    return found
