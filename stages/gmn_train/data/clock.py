"""Where the seconds of a run go: training, evaluation, and waiting for data."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


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
