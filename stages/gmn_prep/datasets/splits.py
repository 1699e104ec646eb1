"""Random splits that are a function of (seed, split, item)."""

from collections.abc import Sequence

import numpy as np

from gmn_pipeline.counter_random import Purpose, child_keys, key_path
from gmn_pipeline.graph import TEST, TRAIN, VAL
from gmn_pipeline.types import Array, IntArray


def first_by_key(keys: Array, count: int) -> Array:
    """Mask of the `count` smallest keys. Children of one key never tie, so the count is exact."""
    if count <= 0:
        return np.zeros(keys.size, dtype=bool)
    if count >= keys.size:
        return np.ones(keys.size, dtype=bool)
    return np.asarray(keys <= np.partition(keys, count - 1)[count - 1])


def draw_splits(
    items: int,
    fractions: Sequence[float],
    seed: int,
    *,
    count: int = 1,
    strata: IntArray | None = None,
) -> Array:
    """`count` random splits of `items`, (count, items) uint8.

    fractions: the shares of train and validation; the rest is test. strata: a label per item; each label is
    shared out by itself, so every part has its share of every label, to one item. Labels below 0 are unknown
    and left out.
    """
    groups = [None] if strata is None else [np.flatnonzero(strata == s) for s in np.unique(strata) if s >= 0]
    out = np.zeros((count, items), dtype=np.uint8)
    for row in range(count):
        keys = child_keys(key_path(seed, Purpose.SPLIT, row), items)
        for members in groups:
            if members is None:
                out[row] = _share_out(keys, fractions)
            else:
                out[row, members] = _share_out(keys[members], fractions)
    return out


def _share_out(keys: Array, fractions: Sequence[float]) -> Array:
    train, val = fractions
    train_count = round(train * keys.size)
    last_val = round((train + val) * keys.size)
    codes = np.full(keys.size, TEST, dtype=np.uint8)
    codes[first_by_key(keys, last_val)] = VAL
    codes[first_by_key(keys, train_count)] = TRAIN
    return codes
