"""Tokenizing in parts that any scheduler can run: `gmn-prep plan`, many times `gmn-prep part`, then `gmn-prep finish`.

Parts take no lock and share nothing but folders. A part that is run twice, at once, on another host, or that is killed
and run again, leaves the same bytes.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gmn_pipeline.console.machine import MOST_THREADS, usable_cores
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.graph.pairs import Pairs
from gmn_pipeline.place import StorePlace
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.store.format.schema import block_group
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_pipeline.store.writing.verbs import finalise_store, has_group, write_block
from gmn_prep.parts.shared_arrays import map_shared, parts_folder, remove_parts, write_shared
from gmn_prep.parts.versions import check_versions
from gmn_prep.phases import Phases
from gmn_prep.tokens.tokenizer import Tokenizer

MOST_PARTS = 1_000_000


@dataclass(frozen=True)
class PartOutcome:
    """What one part did."""

    blocks: int
    """Blocks that belong to the part."""
    written: int
    """Those that were not there yet."""


def write_part(
    path: StorePlace, part: int, parts: int | None, phases: Phases, *, threads: int | None = None
) -> PartOutcome:
    """Tokenize the blocks of part number `part`, from 0, of `parts`; a block is a part of its own by default."""
    for name, value, most in (("--of", parts, MOST_PARTS), ("--threads", threads, MOST_THREADS)):
        if value is not None and not 1 <= value <= most:
            raise ConfigError(f"{name} is {value:,}; it must be from 1 to {most:,}")
    store = TokenStore.open(path, unfinished=True)
    check_versions(path, store.manifest)
    count = store.manifest.blocks if parts is None else parts
    if not 0 <= part < max(count, 1):
        raise ConfigError(f"part {part} does not exist; with {count} parts they are 0..{count - 1}")
    numbers = range(part, store.manifest.blocks, count)
    missing = [number for number in numbers if not has_group(path, block_group(number))]
    if missing:
        borders, tokenizer = store.block_ptr, open_tokenizer(store)
        total = sum(int(borders[number + 1] - borders[number]) for number in missing)
        with ThreadPoolExecutor(threads or usable_cores()) as pool, phases.phase("walks", total, "nodes") as walked:
            for number in missing:
                block = tokenizer.block(int(borders[number]), int(borders[number + 1]), pool, walked)
                write_block(path, number, block)
    return PartOutcome(len(numbers), len(missing))


def share_pairs(path: StorePlace, manifest: Manifest, pairs: Pairs) -> None:
    """Let parts map the linked pairs instead of finding them again, each in memory of its own. Folders only."""
    if isinstance(path, Path):
        write_shared(parts_folder(path, manifest) / "pairs", vars(pairs))


def open_tokenizer(store: TokenStore) -> Tokenizer:
    """A tokenizer on the mapped graph of a store, and on the linked pairs beside it where they are shared."""
    path, shared = store.path, None
    if isinstance(path, Path):
        shared = map_shared(parts_folder(path, store.manifest) / "pairs")
    pairs = None if shared is None else Pairs(**shared)
    return Tokenizer.of(store.graph, store.settings, pairs)


def finish(path: StorePlace) -> Manifest:
    """Check that every part is there and complete the store. StoreError names what is missing."""
    manifest = finalise_store(path)
    remove_parts(path)
    return manifest
