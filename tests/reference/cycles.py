"""Slow twin of the cycle counts: walk every simple closed path."""


def count_cycles(neighbours: list[set[int]], length: int) -> int:
    """Simple cycles of a given length; each is walked from every node and in both directions."""

    def closing_paths(path: list[int]) -> int:
        if len(path) == length:
            return int(path[0] in neighbours[path[-1]])
        return sum(closing_paths([*path, u]) for u in neighbours[path[-1]] if u not in path)

    return sum(closing_paths([v]) for v in range(len(neighbours))) // (2 * length)
