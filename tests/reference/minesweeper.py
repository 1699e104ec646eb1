"""Slow twin of `gmn_prep.datasets.generated.minesweeper_grid`: cells as pairs, one at a time."""

from tests.reference.counter_random import draw

GENERATE = 4


def choose(n: int, count: int, seed: int, stream: int) -> set[int]:
    """The `count` of n items with the smallest draws."""
    return set(sorted(range(n), key=lambda v: draw(seed, GENERATE, stream, v))[:count])


def minesweeper(rows: int, columns: int, seed: int) -> tuple[list[list[int]], list[list[float]], list[int]]:
    """Sorted neighbours, features and labels of every cell, row by row."""
    n = rows * columns
    mines = choose(n, round(0.2 * n), seed, 0)
    hidden = choose(n, round(0.5 * n), seed, 1)
    neighbours, features = [], []
    for row in range(rows):
        for column in range(columns):
            around = [
                r * columns + c for r in range(rows) for c in range(columns) if max(abs(r - row), abs(c - column)) == 1
            ]
            neighbours.append(around)
            cell = [0.0] * 7
            if row * columns + column in hidden:
                cell[0] = 1.0
            else:
                cell[1 + min(5, sum(u in mines for u in around))] = 1.0
            features.append(cell)
    return neighbours, features, [int(v in mines) for v in range(n)]
