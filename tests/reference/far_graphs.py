"""Slow twins of the generators of long-range tasks: one graph at a time, with sets and dicts."""

from dataclasses import dataclass

from tests.reference.counter_random import bounded, draw

GENERATE = 4


@dataclass
class FarGraph:
    """One graph, its nodes by number."""

    edges: set[frozenset[int]]
    x: dict[int, tuple[int, ...]]
    answers: dict[int, int]
    """Of the nodes that are asked."""


def _names(n: int, *path: int) -> list[int]:
    return sorted(range(n), key=lambda i: draw(*path, i))


def ring_transfer(seed: int, graph: int) -> FarGraph:
    path = (seed, GENERATE, 6, graph)
    name = _names(16, *path, 0)
    colour = [bounded(draw(*path, 1, i), 4) for i in range(16)]
    return FarGraph(
        {frozenset((name[i], name[i - 1])) for i in range(16)},
        {name[i]: (colour[i],) for i in range(16)},
        {name[i]: colour[i - 8] for i in range(16)},
    )


def tree_match(seed: int, graph: int) -> FarGraph:
    path = (seed, GENERATE, 7, graph)
    name, keys = _names(15, *path, 0), _names(8, *path, 1)
    values = [bounded(draw(*path, 2, leaf), 8) for leaf in range(8)]
    wanted = bounded(draw(*path, 3), 8)
    x = dict.fromkeys(range(15), (0, 0)) | {name[0]: (wanted + 1, 0)}
    x |= {name[7 + leaf]: (keys[leaf] + 1, values[leaf] + 1) for leaf in range(8)}
    edges = {frozenset((name[parent], name[2 * parent + side])) for parent in range(7) for side in (1, 2)}
    return FarGraph(edges, x, {name[0]: values[keys.index(wanted)]})


def distant_pairs(seed: int, graph: int) -> FarGraph:
    path = (seed, GENERATE, 8, graph)
    name = _names(30, *path, 0)
    colour = [bounded(draw(*path, 3, i), 4) for i in range(30)]
    edges = set()
    for i in range(30):
        for j in range(i + 1, 30):
            apart = j // 5 - i // 5
            if apart < 2 and (draw(*path, 1, i * 30 + j) >> 11) / 2**53 < (0.5, 0.1)[apart]:
                edges.add((i, j))
    edges |= {(i, i + 1) for i in range(30) if i % 5 < 4}
    edges |= {
        (5 * c + bounded(draw(*path, 2, c, 0), 5), 5 * c + 5 + bounded(draw(*path, 2, c, 1), 5)) for c in range(5)
    }
    one, other = bounded(draw(*path, 4, 0), 5), 25 + bounded(draw(*path, 4, 1), 5)
    return FarGraph(
        {frozenset((name[i], name[j])) for i, j in edges},
        {name[i]: (colour[i], int(i in (one, other))) for i in range(30)},
        {name[one]: colour[other], name[other]: colour[one]},
    )
