"""Slow twin of `gmn_prep.datasets.generated.cycle_count`: sets of edges, and every simple closed path walked."""

from tests.reference.counter_random import bounded, draw

GENERATE, STREAM = 4, 5
SIZE, SWAPS, SHUFFLE = range(3)


def swapped_ring(seed: int, graph: int) -> list[set[int]]:
    """Neighbours of every node of one graph."""

    def bits(*path: int) -> int:
        return draw(seed, GENERATE, STREAM, graph, *path)

    n = 24 + bounded(bits(SIZE), 25)
    name = sorted(range(n), key=lambda i: bits(SHUFFLE, i))
    edges = [(name[i], name[(i + step) % n]) for i in range(n) for step in (1, 2)]
    for swap in range(bounded(bits(SWAPS, 0), 2 * n + 1)):
        one, other = (bounded(bits(SWAPS, swap + 1, k), 2 * n) for k in (0, 1))
        turned = bounded(bits(SWAPS, swap + 1, 2), 2)
        (a, b), (c, d) = edges[one], edges[other][::-1] if turned else edges[other]
        there = {frozenset(edge) for edge in edges}
        if len({a, d}) == 2 and len({c, b}) == 2 and not there & {frozenset((a, d)), frozenset((c, b))}:
            edges[one], edges[other] = (a, d), (b, c) if turned else (c, b)
    return [{u for edge in edges if v in edge for u in edge if u != v} for v in range(n)]


def count_cycles(neighbours: list[set[int]], length: int) -> int:
    """Simple cycles of a given length; each is walked from every node and in both directions."""

    def closing_paths(path: list[int]) -> int:
        if len(path) == length:
            return int(path[0] in neighbours[path[-1]])
        return sum(closing_paths([*path, u]) for u in neighbours[path[-1]] if u not in path)

    return sum(closing_paths([v]) for v in range(len(neighbours))) // (2 * length)
