"""How the benchmarks measure: ours and the peer side by side, best of several, so that noise hits both."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table."""

    work: str
    ours: str
    peer: str
    ours_seconds: float
    peer_seconds: float
    """NaN where there is no peer: then the figure stands alone."""


def best_seconds(work: Callable[[], object], times: int = 3) -> float:
    """Wall seconds of the fastest of several runs, after one that compiles and warms up."""
    work()
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def side_by_side(ours: Callable[[], object], peer: Callable[[], object], times: int = 3) -> tuple[float, float]:
    """Best seconds of both, taken in turn."""
    ours()
    peer()
    best = [float("inf"), float("inf")]
    for _ in range(times):
        for i, work in enumerate((ours, peer)):
            begun = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - begun)
    return best[0], best[1]


def data_root() -> Path | None:
    root = os.environ.get("GMN_DATA_ROOT")
    return Path(root) if root and Path(root).is_dir() else None
