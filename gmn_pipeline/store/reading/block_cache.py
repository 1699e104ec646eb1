"""The blocks of tokens a reader has open: mapped (raw) or decoded (zstd), the least used dropped when they are many."""

import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.files.array_files import OpenArray
from gmn_pipeline.store.format.schema import BlockFacts
from gmn_pipeline.types import Array

MAX_MAPPED_BLOCKS = 2048  # eight mappings each: well below Linux's 65,530 per process


@dataclass(frozen=True)
class Block:
    """The arrays of one block of tokens, mapped or decoded; names as in the store."""

    number: int
    facts: BlockFacts
    opened: dict[str, OpenArray]

    def __getitem__(self, name: str) -> Array:
        return self.opened[name].values

    @property
    def decoded_bytes(self) -> int:
        return sum(a.values.nbytes for a in self.opened.values() if a.mapping is None)

    @property
    def mapped_bytes(self) -> int:
        return sum(a.values.nbytes for a in self.opened.values() if a.mapping is not None)

    def check_length(self) -> None:
        """StoreCorruptError if a mapped file was cut off meanwhile. Costs 0.3 µs per array, against SIGBUS."""
        for name, array in self.opened.items():
            if array.was_cut:
                raise StoreCorruptError(f"block {self.number}: {name} was cut off while it was read; restore the store")

    def release(self) -> None:
        for array in self.opened.values():
            array.release()


class BlockCache:
    """Open blocks by number. Safe to use from several threads."""

    def __init__(self, resident_limit: int, cache_bytes: int, most_mapped: int | None = None) -> None:
        """most_mapped: bytes of mapped blocks to keep open; any number unless given."""
        self._resident_limit, self._cache_bytes = resident_limit, cache_bytes
        self._most_mapped = math.inf if most_mapped is None else most_mapped
        self._blocks: OrderedDict[int, Block] = OrderedDict()
        self._mapped_bytes = 0
        self._guard = threading.Lock()

    def get(self, number: int, open_block: Callable[[int], Block]) -> Block:
        """One block; `open_block` is called if it is not open."""
        with self._guard:
            if number in self._blocks:
                self._blocks.move_to_end(number)
                return self._blocks[number]
        block = open_block(number)
        with self._guard:
            if number in self._blocks:  # another thread was faster
                return self._blocks[number]
            self._blocks[number] = block
            self._mapped_bytes += block.mapped_bytes
            held = self._decoded_bytes()
            while len(self._blocks) > 1 and (
                held > self._cache_bytes
                or len(self._blocks) > MAX_MAPPED_BLOCKS
                or self._mapped_bytes > self._most_mapped
            ):
                _, oldest = self._blocks.popitem(last=False)
                self._mapped_bytes -= oldest.mapped_bytes
                held -= oldest.decoded_bytes
        return block

    def _decoded_bytes(self) -> int:
        return sum(b.decoded_bytes for b in self._blocks.values())

    def trim(self) -> None:
        """Give mapped pages back to the system if the process holds more of them than the limit.

        To be called after each block that is read: where the system keeps files in large pages, one touch of a byte
        can bring in two megabytes.
        """
        if self._mapped_bytes > self._resident_limit and _resident_file_bytes() > self._resident_limit:
            with self._guard:
                blocks = list(self._blocks.values())
            for block in blocks:
                block.release()

    def forget(self, number: int) -> None:
        """Drop one block from memory: it will not be needed again soon."""
        with self._guard:
            block = self._blocks.pop(number, None)
            self._mapped_bytes -= block.mapped_bytes if block is not None else 0
        if block is not None:
            block.release()


def _resident_file_bytes() -> int:
    """Bytes of files this process holds in memory (Linux; 0 elsewhere, where the system must manage alone)."""
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123 - called for every batch: Path costs more than the read
            return int(file.read().split()[2]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
