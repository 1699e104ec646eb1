"""Run serial, GIL-free kernels on a few threads.

Numba's own parallel loops would need a threading layer, and its default layer aborts the process when two
Python threads launch kernels at once, as a loader thread and autograd's backward thread do. A pool of Python
threads has no such trap, keeps kernels cacheable on disk, and costs about 20 µs per call.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

import torch

T = TypeVar("T")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="gmn-kernel")


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

    pool = _pool(torch.get_num_threads() - 1)
    others = [pool.submit(drain) for _ in range(threads - 1)]
    try:
        drain()
    finally:
        wait(others)
    for other in others:
        other.result()
