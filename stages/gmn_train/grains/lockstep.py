"""A process's grains, each on a thread of its own, one at a time from one meeting to the next.

A thread runs until its grain meets the others, leaves there what it brings, and lets the next one run; the last one of
the process talks to the other processes. Threads serve as coroutines here: forward and backward passes stop in the
middle of a model without the model knowing. torch's random numbers are each grain's own.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any, TypeVar

import torch
from torch import Tensor

from gmn_train.grains.grain import Grain
from gmn_train.grains.tree_sum import Node, TreeSum, cover
from gmn_train.grains.wire import Wire

T = TypeVar("T")


class BrokenError(Exception):
    """Another grain of this process has failed."""


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Kept from step to step: a thread that torch has seen has threads of its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="grain")


def share_of(rank: int, size: int, count: int) -> tuple[int, int]:
    """The grains [lo, hi) of `count` that process `rank` of `size` computes."""
    return count * rank // size, count * (rank + 1) // size


class Lockstep:
    """One step's grains on this process. Of fewer grains than processes, some have none."""

    def __init__(self, wire: Wire, count: int) -> None:
        self.wire, self.count = wire, count
        self.shares = [share_of(rank, wire.size, count) for rank in range(wire.size)]
        self.first, self.stop = self.shares[wire.rank]
        self.others = [r for r, (lo, hi) in enumerate(self.shares) if lo < hi and r != wire.rank]
        self._brought: list[Tensor] = []
        self._tree = TreeSum()
        self._outcome: Any = None
        self._turns = [threading.Semaphore(0) for _ in range(self.first, self.stop)]
        self._broken = False

    def run(self, work: Callable[[Grain], T], sizes: Sequence[int] | None = None) -> list[T]:
        """work(grain) for each of this process's grains; raises the first error."""
        grains = [Grain(number, self, sizes) for number in range(self.first, self.stop)]
        if len(grains) <= 1:
            return [self._enter(grain, work) for grain in grains]
        futures = [_pool(len(grains)).submit(self._take_turns, grain, work) for grain in grains]
        self._turns[0].release()
        errors = [error for future in futures if (error := future.exception()) is not None]
        for error in errors:
            if not isinstance(error, BrokenError):
                raise error
        return [future.result() for future in futures]

    @staticmethod
    def _enter(grain: Grain, work: Callable[[Grain], T]) -> T:
        grain.enter()
        try:
            return work(grain)
        finally:
            grain.leave()

    def _take_turns(self, grain: Grain, work: Callable[[Grain], T]) -> T:
        place = grain.number - self.first
        self._turns[place].acquire()
        try:
            if self._broken:
                raise BrokenError
            return self._enter(grain, work)
        except BaseException:
            self._broken = True
            raise
        finally:
            self._turns[(place + 1) % len(self._turns)].release()

    def _meet(self, number: int, close: Callable[[], Any]) -> Any:
        """Let the others bring theirs; the last closes the meeting. Returns what that gives."""
        if number == self.stop - 1:
            self._outcome = close()
        if len(self._turns) > 1:
            place, drawn = number - self.first, torch.get_rng_state()
            self._turns[(place + 1) % len(self._turns)].release()
            self._turns[place].acquire()
            if self._broken:
                raise BrokenError
            torch.set_rng_state(drawn)
        outcome = self._outcome
        if number == self.stop - 1:
            self._outcome = None
        return outcome

    def gather(self, number: int, x: Tensor, sizes: Sequence[int]) -> Tensor:
        """See Grain."""
        self._brought.append(x.detach())

        def close() -> Tensor:
            starts = [0, *accumulate(sizes)]
            out = x.new_empty(starts[-1], *x.shape[1:])
            own = out[starts[self.first] : starts[self.stop]]
            torch.cat(self._brought, out=own)
            self._brought = []
            coming = {r: [out[starts[self.shares[r][0]] : starts[self.shares[r][1]]]] for r in self.others}
            self.wire.swap({r: [own] for r in self.others}, coming)
            return out

        out: Tensor = self._meet(number, close)
        return out.detach()

    def sum(self, number: int, x: Tensor) -> Tensor:
        """See Grain."""
        self._tree.add_leaf(number, x.detach().contiguous())

        def close() -> Tensor:
            tree, self._tree = self._tree, TreeSum()
            values = [node.value for node in tree.nodes]
            return self.join(tree, dict.fromkeys(self.others, values), x)

        total: Tensor = self._meet(number, close)
        return total.detach()

    def sum_rows(self, number: int, x: Tensor, starts: Sequence[int]) -> Tensor:
        """See Grain."""
        self._tree.add_leaf(number, x.detach())

        def close() -> Tensor:
            tree, self._tree = self._tree, TreeSum()
            rows = {r: slice(starts[lo], starts[hi]) for r, (lo, hi) in enumerate(self.shares)}
            outgoing = {r: [node.value[rows[r]].contiguous() for node in tree.nodes] for r in self.others}
            own = TreeSum()
            own.nodes = [replace(node, value=node.value[rows[self.wire.rank]]) for node in tree.nodes]
            return self.join(own, outgoing, own.nodes[0].value)

        total: Tensor = self._meet(number, close)
        return total[starts[number] - starts[self.first] : starts[number + 1] - starts[self.first]]

    def join(self, own: TreeSum, outgoing: dict[int, list[Tensor]], like: Tensor) -> Tensor:
        """The sum of this process's nodes and those that the others send, each shaped as `like`."""
        coming = {
            r: [like.new_empty(like.shape) for _ in cover(*self.shares[r])] for r in self.others if r != self.wire.rank
        }
        self.wire.swap(outgoing, coming)
        everything = TreeSum()
        for rank, share in enumerate(self.shares):
            if rank in coming:
                for (height, index), value in zip(cover(*share), coming[rank], strict=True):
                    everything.add(Node(height, index, value, True))
            elif rank == self.wire.rank:
                for node in own.nodes:
                    everything.add(node)
        return everything.total()

    def sum_everywhere(self, own: TreeSum, like: Tensor) -> Tensor:
        """The sum over all grains of flat tensors shaped as `like`, on every process, those without grains too.

        Each process adds up a piece and sends it to the others.
        """
        size, rank = self.wire.size, self.wire.rank
        cuts = [share_of(r, size, len(like)) for r in range(size)]
        pieces = {r: slice(*cuts[r]) for r in range(size) if r != rank}
        mine = slice(*cuts[rank])
        outgoing = {r: [node.value[piece].contiguous() for node in own.nodes] for r, piece in pieces.items()}
        part = TreeSum()
        part.nodes = [replace(node, value=node.value[mine]) for node in own.nodes]
        out = torch.empty_like(like)
        out[mine] = self.join(part, outgoing, like[mine])
        self.wire.swap({r: [out[mine]] for r in pieces}, {r: [out[piece]] for r, piece in pieces.items()})
        return out
