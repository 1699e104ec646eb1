"""The grain that a thread is computing, and how layers ask for it."""

import threading
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from gmn_train.grains.lockstep import Lockstep

_thread = threading.local()


class Grain:
    """One part of a step. Every grain of the step must call the same meetings in the same order."""

    def __init__(self, number: int, lockstep: "Lockstep", sizes: Sequence[int] | None = None) -> None:
        """sizes: rows of each grain where one graph's rows are cut; None where grains are graphs or nodes apart."""
        self.number, self.sizes, self._lockstep = number, sizes, lockstep
        self.starts = None if sizes is None else [0, *accumulate(sizes)]

    @property
    def count(self) -> int:
        """Grains of the step."""
        return self._lockstep.count

    @property
    def leads(self) -> bool:
        """Whether it is its process's first: who does what a process must do once."""
        return self.number == self._lockstep.first

    def gather(self, x: Tensor, sizes: Sequence[int] | None = None) -> Tensor:
        """Every grain's x below each other in their order, (sum of sizes, ...); by default all are of one shape.

        A process holds the result once: it must not be written to.
        """
        return self._lockstep.gather(self.number, x, [len(x)] * self.count if sizes is None else sizes)

    def sum(self, x: Tensor) -> Tensor:
        """The sum of every grain's x."""
        return self._lockstep.sum(self.number, x)

    def sum_rows(self, x: Tensor) -> Tensor:
        """This grain's rows of the sum of every grain's x, which has the rows of all grains."""
        assert self.starts is not None
        return self._lockstep.sum_rows(self.number, x, self.starts)

    def enter(self) -> None:
        """From now on, this thread computes this grain."""
        _thread.grain = self

    def leave(self) -> None:
        _thread.grain = None


def grain_here() -> Grain | None:
    """The grain that this thread computes; None in a plain run."""
    return getattr(_thread, "grain", None)


def row_grain_here() -> Grain | None:
    """The same, where a grain is some rows of one graph and layers have to look beyond them."""
    grain = grain_here()
    return None if grain is None or grain.sizes is None else grain
