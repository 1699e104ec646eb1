"""Reads ahead: background threads make the next steps' inputs while the model computes. Also measures time."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar


@dataclass
class Clock:
    """Counts seconds by what they were spent on; `waited` is never part of the other two."""

    trained: float = 0.0
    evaluated: float = 0.0
    waited: float = 0.0

    def add(self, other: "Clock") -> None:
        """Count another clock's seconds, too."""
        self.trained += other.trained
        self.evaluated += other.evaluated
        self.waited += other.waited

    @contextmanager
    def waiting(self) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.waited += time.perf_counter() - begun

    @contextmanager
    def training(self) -> Iterator[None]:
        begun, waited = time.perf_counter(), self.waited
        try:
            yield
        finally:
            self.trained += time.perf_counter() - begun - (self.waited - waited)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        begun, waited = time.perf_counter(), self.waited
        try:
            yield
        finally:
            self.evaluated += time.perf_counter() - begun
            self.waited = waited  # waiting inside an evaluation is part of it


Item = TypeVar("Item")
Made = TypeVar("Made")


def look_ahead(items: Iterable[Item], tell: Callable[[Item], None], ahead: int = 16) -> Iterator[Item]:
    """The items, in order; `tell` hears of each of them `ahead` items before it comes."""
    waiting: deque[Item] = deque()
    for item in items:
        tell(item)
        waiting.append(item)
        if len(waiting) > ahead:
            yield waiting.popleft()
    yield from waiting


class ReadAhead(Generic[Item, Made]):
    """Iterates over (item, make(item)), in order, with up to `depth` of them made ahead on `threads` threads.

    What is made depends on the item alone, so the number of threads changes no result. clock: counts the seconds the
    consumer stands still.
    """

    def __init__(
        self,
        items: Iterable[Item],
        make: Callable[[Item], Made],
        clock: Clock | None = None,
        *,
        threads: int = 1,
        depth: int = 2,
    ) -> None:
        self._items, self._make = iter(items), make
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="loader")
        self._ahead: deque[tuple[Item, Future[Made]]] = deque()
        self._depth = max(depth, threads)
        self._clock = clock or Clock()

    def __iter__(self) -> Iterator[tuple[Item, Made]]:
        try:
            while True:
                while len(self._ahead) < self._depth:
                    item = next(self._items, None)
                    if item is None:
                        break
                    self._ahead.append((item, self._pool.submit(self._make, item)))
                if not self._ahead:
                    return
                item, future = self._ahead.popleft()
                with self._clock.waiting():
                    made = future.result()
                yield item, made
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
