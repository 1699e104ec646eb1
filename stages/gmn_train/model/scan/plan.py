"""How a scan's work is cut into tasks: a function of the shapes alone.

Every sum over tasks is taken in task order, so the cut fixes the bits of the result; the number of threads only says
who computes which task. Hence no thread count may appear here.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gmn_pipeline.types import IntArray
from gmn_train.model.scan.kernels import CHUNK

RANGES = 32  # enough to even out over a few cores; each costs one (states, channels) float64 buffer
GROUP = 64  # channels per group when one sequence must be shared: one block of the kernels
SMALLEST = 4096  # channel-steps worth a task: about 0.1 ms


class Share(NamedTuple):
    """Sequences [seq_lo, seq_hi) and channels [ch_lo, ch_hi), and the numbers of that range and group."""

    seq_lo: int
    seq_hi: int
    ch_lo: int
    ch_hi: int
    range_index: int
    group_index: int


def cut_sequences(
    seq_ptr: IntArray, channels: int, ranges: int = RANGES, smallest: int = SMALLEST
) -> list[tuple[int, int]]:
    """Cut sequences into at most `ranges` runs [lo, hi) of about the same number of rows."""
    count, total = len(seq_ptr) - 1, int(seq_ptr[-1])
    ranges = max(1, min(ranges, count, total * channels // smallest))
    cuts = np.searchsorted(seq_ptr, np.arange(1, ranges) * (total / ranges))
    edges = np.unique(np.concatenate([[0], cuts, [count]])).tolist()
    return list(pairwise(edges))


def cut_rows(seq_ptr: IntArray, rows: int, ranges: int) -> list[tuple[int, int]]:
    """Cut sequences into at most `ranges` runs [lo, hi) of about the same number of rows, at least `rows` each."""
    return cut_sequences(seq_ptr, 1, max(1, min(ranges, int(seq_ptr[-1]) // rows)), smallest=1)


def plan_tasks(seq_ptr: IntArray, channels: int) -> tuple[list[Share], int, int]:
    """Return the tasks, the number of sequence ranges and the number of channel groups.

    With many sequences a task takes all channels of some of them. Where one sequence is longer than an eighth
    of the whole, channels are shared out too; each group then has its own sum over channels, (groups, total,
    2 states). A single sequence of at most GROUP channels is therefore one task.
    """
    runs = cut_sequences(seq_ptr, channels)
    longest = int(np.diff(seq_ptr).max(initial=0))
    group = GROUP if longest * 8 > seq_ptr[-1] else max(channels, 1)
    starts = range(0, channels, group)
    tasks = [
        Share(lo, hi, at, min(at + group, channels), r, g)
        for r, (lo, hi) in enumerate(runs)
        for g, at in enumerate(starts)
    ]
    return tasks, len(runs), len(starts)


def chunk_pointers(seq_ptr: IntArray) -> IntArray:
    """Where each sequence's kept states begin, (sequences + 1,): one per chunk after its first."""
    kept = np.maximum((np.diff(seq_ptr) - 1) // CHUNK, 0)
    return np.concatenate([[0], np.cumsum(kept)])
