"""Opens a token store. Opening reads the manifest and maps; a block is looked at when it is first asked for."""

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import GraphError, StoreCorruptError, StoreError, StoreUnfinishedError, nearest
from gmn_pipeline.graph import Graph
from gmn_pipeline.store.group_files import OpenArray, open_array, read_attributes, read_block_facts
from gmn_pipeline.store.manifest import Manifest
from gmn_pipeline.store.schema import BlockFacts, block_name, block_specs, fixed_groups
from gmn_pipeline.store.token_settings import TokenSettings
from gmn_pipeline.types import Array, IntArray

RESIDENT_LIMIT = 1 << 30
CACHE_BYTES = 1 << 29
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

    def release(self) -> None:
        for array in self.opened.values():
            array.release()


class TokenStore:
    """A finished token store, read-only. Safe to use from several threads.

    Open it with `TokenStore.open(path)`; `view()` gives tokens, `graph` the graph, `encoding(name)` and
    `ordering(name)` what was computed with them.
    """

    def __init__(self, path: Path, manifest: Manifest, resident_limit: int, cache_bytes: int) -> None:
        self.path, self.manifest = path, manifest
        self._resident_limit, self._cache_bytes = resident_limit, cache_bytes
        self._blocks: OrderedDict[int, Block] = OrderedDict()
        self._mapped_bytes = 0
        self._guard = threading.Lock()

    @classmethod
    def open(
        cls, path: str | Path, *, resident_limit: int = RESIDENT_LIMIT, cache_bytes: int = CACHE_BYTES
    ) -> "TokenStore":
        """Open the store at `path`.

        resident_limit: of a raw store larger than this, mapped pages are given back to the system whenever the process
        holds more than this many bytes of files in memory. cache_bytes: decoded blocks of a zstd store to keep.
        Raises StoreError (missing, not a store, newer format), StoreUnfinishedError, StoreCorruptError.
        """
        path = Path(path)
        if not path.exists():
            raise StoreError(f"there is no store at {path}; make one with gmn-prep tokenize")
        if not (path / "zarr.json").exists():
            raise StoreError(f"{path} is not a token store (it has no zarr.json); make one with gmn-prep tokenize")
        manifest = Manifest.from_attributes(read_attributes(path), str(path))
        if manifest.state != "complete":
            raise StoreUnfinishedError(f"{path} is unfinished; run its gmn-prep tokenize command again to complete it")
        store = cls(path, manifest, resident_limit, cache_bytes)
        store._check_blocks_present()
        return store

    def _check_blocks_present(self) -> None:
        try:
            found = {entry.name for entry in os.scandir(self.path / "tokens")}
        except OSError as error:
            raise StoreCorruptError(f"{self.path}/tokens: {error.strerror}; restore it or tokenize again") from None
        missing = [b for b in range(self.manifest.blocks) if block_name(b) not in found]
        if missing:
            raise StoreCorruptError(
                f"{self.path}/tokens/{block_name(missing[0])} is missing ({len(missing)} of {self.manifest.blocks} "
                "blocks are); restore the store or tokenize again"
            )
        pointer = self.block_ptr
        if pointer[0] != 0 or pointer[-1] != self.manifest.graph.nodes or np.any(np.diff(pointer) < 0):
            raise StoreCorruptError(f"{self.path}/tokens/index/block_ptr does not run from 0 up to the node count")

    @property
    def settings(self) -> TokenSettings:
        """The largest m, M, s that views of this store can have."""
        return self.manifest.tokens

    @property
    def fingerprint(self) -> str:
        return self.manifest.fingerprint

    @property
    def num_nodes(self) -> int:
        return self.manifest.graph.nodes

    @cached_property
    def block_ptr(self) -> IntArray:
        """(blocks+1,) where each block's nodes begin."""
        return self._group("tokens/index")["block_ptr"]

    @cached_property
    def graph(self) -> Graph:
        """The graph, on mapped arrays. Pointers and ids are checked here, before any kernel sees them."""
        facts = self.manifest.graph
        arrays: dict[str, Any] = self._group("graph")
        try:
            return Graph(
                **arrays,
                task=self.manifest.task,
                directed=facts.directed,
                x_categories=facts.x.categories if facts.x else None,
                edge_categories=facts.edge_attr.categories if facts.edge_attr else None,
                x_names=facts.x.names if facts.x else None,
                edge_names=facts.edge_attr.names if facts.edge_attr else None,
            )
        except GraphError as error:
            raise StoreCorruptError(f"{self.path}/graph: {error}") from None

    def encoding(self, name: str) -> dict[str, Array]:
        """The arrays of one positional encoding, `laplacian` or `random_walk`."""
        return self._named("encodings", "encoding", name, self.manifest.encodings)

    def ordering(self, name: str) -> dict[str, Array]:
        """`permutation` (n,) and `ranks` (n,) of one node ordering; the permutation is checked to be one."""
        arrays = self._named("orderings", "ordering", name, self.manifest.orderings)
        seen = np.zeros(self.num_nodes, dtype=bool)
        inside = arrays["permutation"].min(initial=0) >= 0 and arrays["permutation"].max(initial=-1) < self.num_nodes
        if inside:
            seen[arrays["permutation"]] = True
        if not inside or not seen.all():
            raise StoreCorruptError(f"{self.path}/orderings/{name}/permutation is not a permutation of the nodes")
        return arrays

    def _named(self, folder: str, what: str, name: str, present: dict[str, Any]) -> dict[str, Array]:
        if name not in present:
            has = ", ".join(present) or f"no {what}"
            raise StoreError(
                f"{self.path} has no {what} '{name}'{nearest(name, list(present))}; it has {has}: "
                f"tokenize again with it, or choose another"
            )
        return self._group(f"{folder}/{name}")

    def _group(self, group: str) -> dict[str, Array]:
        specs = fixed_groups(self.manifest)[group]
        codec = self.manifest.codec
        return {name: open_array(self.path / group / name, spec, codec).values for name, spec in specs.items()}

    def view(self, m: int | None = None, M: int | None = None, s: int | None = None) -> "TokenView":
        """Tokens at these settings, none larger than the store's (ConfigError says what it has)."""
        return TokenView(self, self.settings.smaller(m, M, s))

    def block(self, number: int) -> Block:
        """One block's arrays: mapped (raw) or decoded into a bounded cache (zstd)."""
        with self._guard:
            if number in self._blocks:
                self._blocks.move_to_end(number)
                return self._blocks[number]
        block = self._open_block(number)
        with self._guard:
            if number in self._blocks:  # another thread was faster
                return self._blocks[number]
            self._blocks[number] = block
            self._mapped_bytes += block.mapped_bytes
            held = sum(b.decoded_bytes for b in self._blocks.values())
            while len(self._blocks) > 1 and (held > self._cache_bytes or len(self._blocks) > MAX_MAPPED_BLOCKS):
                _, oldest = self._blocks.popitem(last=False)
                self._mapped_bytes -= oldest.mapped_bytes
                held -= oldest.decoded_bytes
        return block

    def _open_block(self, number: int) -> Block:
        folder = self.path / "tokens" / block_name(number)
        facts = read_block_facts(folder)
        first, end = self.block_ptr[number : number + 2]
        if (facts.first_node, facts.nodes) != (first, end - first):
            raise StoreCorruptError(f"{folder}/zarr.json: says nodes from {facts.first_node}, expected from {first}")
        specs = block_specs(self.manifest, facts)
        codec = self.manifest.codec
        opened = {name: open_array(folder / name, spec, codec, random=True) for name, spec in specs.items()}
        return Block(number, facts, opened)

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

    def verify(self) -> None:
        """Check every byte; StoreCorruptError names the first array that is not as it was written."""
        from gmn_pipeline.store.verify import verify_store

        verify_store(self)

    def __repr__(self) -> str:
        t, g = self.settings, self.manifest.graph
        return f"TokenStore({self.path.name}: {g.nodes:,} nodes, m={t.m} M={t.M} s={t.s}, {self.manifest.codec})"


def _resident_file_bytes() -> int:
    """Bytes of files this process holds in memory (Linux; 0 elsewhere, where the system must manage alone)."""
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123 - called for every batch: Path costs more than the read
            return int(file.read().split()[2]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


from gmn_pipeline.store.view import TokenView  # noqa: E402 - a view holds its store, a store makes views
