"""Opens a token store. Opening reads the manifest and maps files; a block is opened when it is first asked for."""

import mmap
import weakref
from collections.abc import Iterable
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from gmn_pipeline.errors import GraphError, StoreCorruptError
from gmn_pipeline.graph import Graph
from gmn_pipeline.place import StorePlace, as_place
from gmn_pipeline.store.checking.byte_check import ByteCheck, check_group_bytes
from gmn_pipeline.store.files.array_files import REMEDY, block_facts, is_cut, open_array, read_attributes
from gmn_pipeline.store.files.manifest_file import manifest_in, open_storage
from gmn_pipeline.store.files.storage import Storage
from gmn_pipeline.store.format.digests import digest_of, group_digest
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.store.format.schema import BlockFacts, block_group, block_name, block_specs, fixed_groups
from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_pipeline.store.format.words import Check
from gmn_pipeline.store.reading.block_cache import Block, BlockCache
from gmn_pipeline.store.reading.view import TokenView
from gmn_pipeline.types import Array, IntArray

RESIDENT_LIMIT = 1 << 30
CACHE_BYTES = 1 << 29


class TokenStore:
    """A token store, read-only. Safe to use from several threads.

    Open it with `TokenStore.open(path)`, also by a URL such as s3://bucket/name.zarr; `view()` gives tokens, `graph`
    the graph, `encoding(name)` and `ordering(name)` what was computed with them. It stays on the store it was opened
    on, even if another takes the path. A group's digest is compared with the manifest when the group is first used.
    """

    def __init__(
        self, path: StorePlace, storage: Storage, manifest: Manifest, resident_limit: int, cache_bytes: int
    ) -> None:
        self.path, self.storage, self.manifest = path, storage, manifest
        self._cache = BlockCache(resident_limit, cache_bytes, storage.room)
        self._check: ByteCheck | None = None
        self._block_bytes: dict[int, int] = {}
        self._mapped: dict[str, weakref.ref[mmap.mmap]] = {}
        """What is mapped of groups other than blocks, by array."""

    @classmethod
    def open(
        cls,
        path: str | StorePlace,
        *,
        unfinished: bool = False,
        check: Check = "none",
        fresh: bool = False,
        resident_limit: int = RESIDENT_LIMIT,
        cache_bytes: int = CACHE_BYTES,
    ) -> "TokenStore":
        """Open the store at `path`.

        Raises StoreError (missing, not a store, newer format), StoreUnfinishedError, StoreCorruptError.

        Args:
            unfinished: also open a store that is still being written, for its manifest and graph.
            check: which checksums to compare: `full` all of them now; `sampled` each part's once, in the background,
                when it is first used (a fault is raised by the next read, or by `finish_check`); `none`.
            fresh: of a store in an object store, read every byte from there and none from the local cache.
            resident_limit: of a raw store larger than this, mapped pages are given back to the system whenever the
                process holds more than this many bytes of files in memory.
            cache_bytes: decoded blocks of a zstd store to keep.
        """
        path = as_place(path)
        storage = open_storage(path, fresh=fresh)
        store = cls(path, storage, manifest_in(storage, unfinished=unfinished), resident_limit, cache_bytes)
        if store.is_complete:
            store.check_bytes(check)
            store._check_blocks_present()
        return store

    def check_bytes(self, check: Check) -> None:
        """Compare the checksums of all parts now (`full`), or of each when it is first used (`sampled`)."""
        if check == "full":
            for group in fixed_groups(self.manifest):
                self._check_part(group)
            for number in range(self.manifest.blocks):
                self._check_part(number)
        self._check = ByteCheck() if check == "sampled" else None

    def finish_check(self) -> None:
        """Wait for the checks of what was used so far; StoreCorruptError names an array that was changed."""
        if self._check is not None:
            self._check.finish()

    def _check_part(self, part: int | str) -> None:
        """Compare the checksums of a block, or of a group by name."""
        if isinstance(part, int):
            self._check_block(part)
            group, specs = block_group(part), block_specs(self.manifest, self.block_facts(part))
        else:
            self._check_digest(part)
            group, specs = part, fixed_groups(self.manifest)[part]
        check_group_bytes(self.storage, group, specs, self.manifest.codec)

    def _first_use(self, part: int | str) -> None:
        if self._check is not None:
            self._check.first_use(part, self._check_part)

    def _check_blocks_present(self) -> None:
        present = set(self.storage.list("tokens"))
        for number in range(min(self.manifest.blocks, len(present) + 1)):
            if f"{block_name(number)}/" not in present:
                raise StoreCorruptError(f"{self.path}/{block_group(number)} is missing; {REMEDY}")
        pointer = self.block_ptr
        if pointer[0] != 0 or pointer[-1] != self.num_nodes or np.any(pointer[1:] < pointer[:-1]):
            raise StoreCorruptError(f"{self.path}/tokens/index/block_ptr does not run from 0 up to the node count")

    @property
    def is_complete(self) -> bool:
        return self.manifest.state == "complete"

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
        """The arrays of one positional encoding, such as `laplacian` or `random_walk`."""
        self.manifest.check_has("encoding", name, str(self.path))
        return self._group(f"encodings/{name}")

    def ordering(self, name: str) -> dict[str, Array]:
        """`permutation` (n,) and `ranks` (n,) of one node ordering; the permutation is checked to be one."""
        self.manifest.check_has("ordering", name, str(self.path))
        arrays = self._group(f"orderings/{name}")
        seen = np.zeros(self.num_nodes, dtype=bool)
        inside = arrays["permutation"].min(initial=0) >= 0 and arrays["permutation"].max(initial=-1) < self.num_nodes
        if inside:
            seen[arrays["permutation"]] = True
        if not inside or not seen.all():
            raise StoreCorruptError(f"{self.path}/orderings/{name}/permutation is not a permutation of the nodes")
        return arrays

    def _group(self, group: str) -> dict[str, Array]:
        self._check_digest(group)
        self._first_use(group)
        specs, codec = fixed_groups(self.manifest)[group], self.manifest.codec
        opened = {name: open_array(self.storage, f"{group}/{name}", spec, codec) for name, spec in specs.items()}
        for name, array in opened.items():
            if array.mapping is not None:
                self._mapped[f"{group}/{name}"] = weakref.ref(array.mapping)
        return {name: array.values for name, array in opened.items()}

    def check_length(self) -> None:
        """StoreCorruptError if a mapped file other than a block's was cut off meanwhile; costs 0.4 µs per array."""
        for name, reference in list(self._mapped.items()):
            if is_cut(reference()):
                raise StoreCorruptError(f"{self.path}/{name} was cut off while it was read; {REMEDY}")

    def _check_digest(self, group: str) -> None:
        """Compare a group with the manifest by the digest of its attributes: is it this store's?"""
        if self.is_complete and group_digest(read_attributes(self.storage, group)) != self.manifest.digests.get(group):
            raise StoreCorruptError(f"{self.path}/{group} was replaced: it does not match the manifest; {REMEDY}")

    @cached_property
    def _block_digests(self) -> list[str]:
        """Every block's digest, held against the manifest. Reads one small file per block, once."""
        digests = [group_digest(read_attributes(self.storage, block_group(b))) for b in range(self.manifest.blocks)]
        if digest_of(digests) != self.manifest.digests.get("tokens"):
            raise StoreCorruptError(f"{self.path}/tokens: a block was replaced; {REMEDY}")
        return digests

    def _check_block(self, number: int) -> None:
        attributes = read_attributes(self.storage, block_group(number))
        if self.is_complete and group_digest(attributes) != self._block_digests[number]:
            raise StoreCorruptError(
                f"{self.path}/{block_group(number)} was replaced while the store was read; {REMEDY}"
            )

    def block_facts(self, number: int) -> BlockFacts:
        """The counts of one block, as far as they can be true."""
        where = f"{self.path}/{block_group(number)}"
        facts, tokens = block_facts(read_attributes(self.storage, block_group(number)), where), self.settings
        first, end = (int(v) for v in self.block_ptr[number : number + 2])
        if (facts.first_node, facts.nodes) != (first, end - first):
            own = f"{facts.nodes} nodes from {facts.first_node}"
            raise StoreCorruptError(
                f"{where}/zarr.json has {own}, tokens/index/block_ptr {end - first} from {first}; {REMEDY}"
            )
        sequences = facts.nodes * tokens.sequence_length
        most_edges = sequences * tokens.max_token_edges(self.manifest.graph.directed)
        if facts.token_nodes > sequences * tokens.max_token_nodes or facts.token_edges > most_edges:
            raise StoreCorruptError(f"{where}/zarr.json: more nodes or edges than its tokens can have; {REMEDY}")
        return facts

    def block_bytes(self, number: int) -> int:
        """What one block takes, open."""
        if number not in self._block_bytes:
            specs = block_specs(self.manifest, self.block_facts(number)).values()
            self._block_bytes[number] = sum(prod(spec.shape) * spec.dtype.itemsize for spec in specs)
        return self._block_bytes[number]

    def view(self, m: int | None = None, M: int | None = None, s: int | None = None) -> TokenView:
        """Tokens at these settings, none larger than the store's (ConfigError says what it has)."""
        return TokenView(self, self.settings.smaller(m, M, s))

    def expect(self, node_ids: Array) -> None:
        """Tell which nodes will be read soon: of a far store, their blocks are fetched meanwhile."""
        if self.storage.room is not None:
            self.expect_blocks(np.unique(np.searchsorted(self.block_ptr, node_ids, side="right") - 1).tolist())

    def expect_blocks(self, numbers: Iterable[int]) -> None:
        self.storage.expect(block_group(number) for number in numbers)

    def block(self, number: int) -> Block:
        """One block's arrays: mapped (raw) or decoded into a bounded cache (zstd)."""
        self._first_use(number)
        block = self._cache.get(number, self._open_block)
        block.check_length()
        return block

    def _open_block(self, number: int) -> Block:
        self._check_block(number)
        facts = self.block_facts(number)
        specs, group, codec = block_specs(self.manifest, facts), block_group(number), self.manifest.codec
        opened = {n: open_array(self.storage, f"{group}/{n}", spec, codec, random=True) for n, spec in specs.items()}
        return Block(number, facts, opened)

    def trim(self) -> None:
        """Give mapped pages back to the system if the process holds more of them than the limit."""
        self._cache.trim()

    def forget(self, number: int) -> None:
        """Drop one block from memory: it will not be needed again soon."""
        self._cache.forget(number)

    def verify(self) -> None:
        """Check every byte; StoreCorruptError names the first array that is not as it was written."""
        from gmn_pipeline.store.checking.verify import verify_store

        verify_store(self)

    def __repr__(self) -> str:
        t, g = self.settings, self.manifest.graph
        return f"TokenStore({self.path.name}: {g.nodes:,} nodes, m={t.m} M={t.M} s={t.s}, {self.manifest.codec})"
