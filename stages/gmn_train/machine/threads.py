"""Run serial, GIL-free kernels on a few threads.

Numba's own parallel loops would need a threading layer, and its default layer aborts the process when two
Python threads launch kernels at once, as a loader thread and autograd's backward thread do. A pool of Python
threads has no such trap, keeps kernels cacheable on disk, and costs about 20 µs per call.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

import torch

T = TypeVar("T")


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """One per process: threads do not survive a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"gmn-kernel-{process}")


def run_tasks(work: Callable[[T], None], tasks: Sequence[T]) -> None:
    """Call `work` on every task, on torch.get_num_threads() threads of which the caller is one.

    Tasks must be independent and must not call `run_tasks`. The first error is raised after all have ended.
    """
    threads = min(torch.get_num_threads(), len(tasks))
    if threads <= 1:
        for task in tasks:
            work(task)
        return
    remaining = iter(tasks)  # `next` on a list iterator is atomic under the GIL

    def drain() -> None:
        for task in remaining:
            work(task)

    pool = _pool(torch.get_num_threads() - 1, os.getpid())
    others = [pool.submit(drain) for _ in range(threads - 1)]
    try:
        drain()
    finally:
        started = [other for other in others if not other.cancel()]  # those behind another caller's are not needed
        wait(started)
    for other in started:
        other.result()
