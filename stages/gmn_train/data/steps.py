"""Which units make up which step of an epoch: pure functions, apart from any reading.

A *unit* is what a step is made of: a node, a pair of nodes or a graph. A step without units is a whole graph.
"""

from dataclasses import dataclass

import numpy as np

from gmn_pipeline.counter_random import Purpose, child_keys, key_path
from gmn_pipeline.types import Array, IntArray

SHUFFLE_WINDOW = 64
"""Blocks shuffled together where a store is larger than memory: reads stay within a window of the store."""


@dataclass(frozen=True, eq=False)
class Step:
    """One forward pass."""

    number: int
    """Its place in the epoch, the same for every process."""
    units: IntArray | None = None
    """Ascending; None for a whole graph."""


WHOLE_GRAPH = Step(0)


def keyed_shuffle(units: IntArray, seed: int, *path: int) -> IntArray:
    """The units in an order that depends on (seed, path) alone."""
    return units[np.argsort(child_keys(key_path(seed, Purpose.SHUFFLE, *path), len(units)), kind="stable")]


def plan_epoch(units: IntArray, size: int, seed: int, epoch: int, *, block_ptr: IntArray | None = None) -> list[Step]:
    """The steps of a training epoch: all units once, `size` at a time, shuffled by (seed, epoch).

    block_ptr: borders of the store's blocks by unit. With it, blocks are shuffled and then units within windows of
    SHUFFLE_WINDOW blocks, so that a window's pages are read once.
    """
    if block_ptr is None or len(block_ptr) <= SHUFFLE_WINDOW + 1:
        order = keyed_shuffle(units, seed, epoch)
    else:
        blocks = keyed_shuffle(np.arange(len(block_ptr) - 1), seed, epoch, 0)
        of_block = np.searchsorted(block_ptr, units, side="right") - 1
        by_block = units[np.argsort(of_block, kind="stable")]
        borders = np.searchsorted(np.sort(of_block), np.arange(len(block_ptr)))
        windows = []
        for number, first in enumerate(range(0, len(blocks), SHUFFLE_WINDOW)):
            parts = [by_block[borders[b] : borders[b + 1]] for b in blocks[first : first + SHUFFLE_WINDOW]]
            windows.append(keyed_shuffle(np.concatenate(parts), seed, epoch, 1 + number))
        order = np.concatenate(windows)
    return in_steps(order, size)


def in_steps(units: IntArray, size: int) -> list[Step]:
    """`units` in the given order, `size` at a time. Units of one step are sorted: the store is read forwards."""
    starts = range(0, len(units), size)
    return [Step(i, np.sort(units[at : at + size])) for i, at in enumerate(starts)]


def split_items(splits: Array | None, split: int, code: int, count: int) -> IntArray:
    """The items of one part (train, val, test) of one split; all of them where the store has no splits."""
    if splits is None:
        return np.arange(count)
    return np.flatnonzero(splits[split] == code)
