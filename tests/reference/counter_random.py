"""Slow twin of `gmn_pipeline.counter_random`: Python integers, as the definition reads."""

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15


def splitmix64(state: int, count: int) -> list[int]:
    """The first `count` outputs of SplitMix64 started at `state`."""
    outputs = []
    for _ in range(count):
        state = (state + GAMMA) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        outputs.append(z ^ (z >> 31))
    return outputs


def draw(seed: int, purpose: int, *path: int) -> int:
    """The 64 bits at (seed, purpose, *path): one SplitMix64 stream per branching of the tree."""
    key = seed & MASK
    for index in (purpose, *path):
        key = splitmix64(key, index + 1)[-1]
    return key


def bounded(bits: int, n: int) -> int:
    return bits * n >> 64
