"""Tokenizing in parts that any scheduler can run: `gmn-prep plan`, many times `gmn-prep part`, then `gmn-prep finish`.

Parts take no lock and share nothing but the store's folder. A part that is run twice, at once, on another host, or that
is killed and run again, leaves the same bytes.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.store.manifest import Manifest
from gmn_pipeline.store.reader import TokenStore
from gmn_pipeline.store.schema import block_group
from gmn_pipeline.store.writing import finalise_store, has_group, write_block
from gmn_prep.phases import Phases
from gmn_prep.tokens.tokenizer import Tokenizer


@dataclass(frozen=True)
class PartOutcome:
    """What one part did."""

    blocks: int
    """Blocks that belong to the part."""
    written: int
    """Those that were not there yet."""


def write_part(path: Path, part: int, parts: int | None, phases: Phases, *, threads: int | None = None) -> PartOutcome:
    """Tokenize the blocks of part number `part`, from 0, of `parts`; a block is a part of its own by default."""
    store = TokenStore.open(path, unfinished=True)
    count = store.manifest.blocks if parts is None else parts
    if not 0 <= part < max(count, 1):
        raise ConfigError(f"part {part} does not exist; with {count} parts they are 0..{count - 1}")
    numbers = range(part, store.manifest.blocks, count)
    missing = [number for number in numbers if not has_group(path, block_group(number))]
    if missing:
        borders, tokenizer = store.block_ptr, Tokenizer.of(store.graph, store.settings)
        total = sum(int(borders[number + 1] - borders[number]) for number in missing)
        with ThreadPoolExecutor(threads or usable_cores()) as pool, phases.phase("walks", total, "nodes") as walked:
            for number in missing:
                block = tokenizer.block(int(borders[number]), int(borders[number + 1]), pool, walked)
                write_block(path, number, block)
    return PartOutcome(len(numbers), len(missing))


def finish(path: Path) -> Manifest:
    """Check that every part is there and complete the store. StoreError names what is missing."""
    return finalise_store(path)
