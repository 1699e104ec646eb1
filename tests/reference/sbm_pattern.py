"""Slow twin of `gmn_prep.datasets.generated.sbm_pattern`: one graph, pair by pair, in Python integers."""

from tests.reference.counter_random import GAMMA, MASK, bounded, draw, splitmix64

GENERATE, GRAPH_STREAM, PATTERN_STREAM = 4, 2, 3
SIZES, EDGES, FEATURES, SHUFFLE = range(4)
MOST_NODES = 190


def child(key: int, index: int) -> int:
    """Output number `index` of SplitMix64 started at `key`, without the ones before it."""
    return splitmix64((key + GAMMA * index) & MASK, 1)[0]


def joined(bits: int, chance: float) -> bool:
    return (bits >> 11) / 2**53 < chance


def sbm_pattern(seed: int, graph: int, patterns: int) -> tuple[set[tuple[int, int]], list[int], list[int]]:
    """Slots, features and labels of one graph."""
    key = draw(seed, GENERATE, GRAPH_STREAM, graph)
    own = draw(seed, GENERATE, PATTERN_STREAM, graph % patterns)
    sizes = [5 + bounded(child(child(key, SIZES), c), 30) for c in range(5)]
    community = [c for c, size in enumerate(sizes) for _ in range(size)]
    base = len(community)
    n = base + 20
    shuffle = child(key, SHUFFLE)
    place = sorted(range(n), key=lambda v: child(shuffle, v))
    slots = set()
    for i in range(n):
        for j in range(i + 1, n):
            if i >= base:
                there = joined(child(child(own, EDGES), (i - base) * 20 + j - base), 0.5)
            else:
                chance = 0.5 if j >= base or community[i] == community[j] else 0.35
                there = joined(child(child(key, EDGES), i * MOST_NODES + j), chance)
            if there:
                slots |= {(place[i], place[j]), (place[j], place[i])}
    features, labels = [0] * n, [0] * n
    for role in range(n):
        planted = role >= base
        bits = child(child(own if planted else key, FEATURES), role - base if planted else role)
        features[place[role]] = bounded(bits, 3)
        labels[place[role]] = int(planted)
    return slots, features, labels
