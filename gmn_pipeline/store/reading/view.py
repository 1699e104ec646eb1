"""Tokens of a store at some (m, M, s), gathered by node."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from gmn_pipeline.errors import ConfigError, StoreCorruptError
from gmn_pipeline.graph import id_dtype
from gmn_pipeline.store.format.schema import block_name
from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_pipeline.store.reading.gather import FAULTS, copy_edges, copy_nodes, copy_walks, count_tokens
from gmn_pipeline.types import Array, IntArray

if TYPE_CHECKING:
    from gmn_pipeline.store.reading.block_cache import Block
    from gmn_pipeline.store.reading.reader import TokenStore

Part = Literal["edges", "walks"]


@dataclass(frozen=True)
class TokenBatch:
    """The tokens of some nodes, ragged, in sequence order: token t of node i is number i * L + t."""

    settings: TokenSettings
    node_ids: IntArray
    """(B,) the nodes asked for."""
    nodes: IntArray
    """(N,) the tokens' nodes one after the other, each token's in first-visit order, its own node first."""
    node_ptr: IntArray
    """(B*L + 1,) int64: token t's nodes are nodes[node_ptr[t]:node_ptr[t+1]]."""
    edges: IntArray | None
    """(E, 2) pairs of indices into the token's node list. Undirected: once each, smaller index first."""
    edge_ptr: IntArray | None
    """(B*L + 1,) int64, as node_ptr."""
    edge_slots: IntArray | None
    """(E, 2) CSR slots of both directions (directed: (E, 1)), where the graph has edge features."""
    walks: IntArray | None
    """(B, W) every walk as indices into its token's node list: levels m..1, repeats, walks, steps 1..level."""

    @property
    def length(self) -> int:
        """L: tokens per node."""
        return self.settings.sequence_length

    def token(self, node: int, position: int) -> IntArray:
        """The nodes of one token, of the batch's node number `node`."""
        t = node * self.length + position
        return self.nodes[self.node_ptr[t] : self.node_ptr[t + 1]]


@dataclass(frozen=True)
class TokenView:
    """A store seen at settings no larger than its own, by slicing prefixes: nothing is sampled again."""

    store: "TokenStore"
    settings: TokenSettings

    def gather(
        self,
        node_ids: Array | Sequence[int],
        *,
        parts: Sequence[Part] = ("edges", "walks"),
        repeats: Array | None = None,
    ) -> TokenBatch:
        """The tokens of `node_ids`, in that order; ids may repeat.

        parts: leave out what is not needed; nodes always come. repeats: (B, m, s) which stored repeat stands at each
        place of levels 1..m, or (1, m, s) for all nodes alike; default: the first s in stored order.
        Every index read from the store is checked on the way; StoreCorruptError names the array that is wrong.
        """
        self.store.check_length()
        ids = self._check_ids(node_ids)
        chosen = self._check_repeats(repeats, ids.size)
        groups = self._groups(ids)
        if len(groups) < 2:
            return self._gather(ids, parts, chosen)
        from gmn_pipeline.store.reading.join_batches import join_batches

        own = [chosen if chosen.shape[0] == 1 else chosen[rows] for rows in groups]
        batches = [self._gather(ids[rows], parts, some) for rows, some in zip(groups, own, strict=True)]
        return join_batches(ids, list(zip(groups, batches, strict=True)))

    def _gather(self, ids: IntArray, parts: Sequence[Part], chosen: IntArray) -> TokenBatch:
        """As `gather`, with all blocks of `ids` open at a time."""
        have, want = self.store.settings, self.settings
        tokens = ids.size * want.sequence_length
        shape = np.array([have.m, have.M, have.s, want.m, want.M, want.s], dtype=np.int64)

        pieces = list(self._pieces(ids))
        node_ptr, edge_ptr = np.zeros(tokens + 1, dtype=np.int64), np.zeros(tokens + 1, dtype=np.int64)
        for block, rows, local in pieces:
            b = block
            fault = count_tokens(
                b["node_ptr"], b["edge_ptr"], b["sizes"], b["edge_sizes"], b["nodes"].shape[0], b["edges"].shape[0],
                local, rows, chosen, shape, node_ptr[1:], edge_ptr[1:],
            )  # fmt: skip
            self._check(fault, block)
            self.store.trim()
        np.cumsum(node_ptr, out=node_ptr)
        np.cumsum(edge_ptr, out=edge_ptr)

        nodes = np.empty(node_ptr[-1], dtype=id_dtype(self.store.num_nodes))
        with_edges, with_walks = "edges" in parts, "walks" in parts
        edges = slots = walks = None
        if with_edges:
            edges = np.empty((edge_ptr[-1], 2), dtype=want.local_dtype)
            if self.store.manifest.graph.edge_attr is not None:
                columns = 1 if self.store.manifest.graph.directed else 2
                slots = np.empty((edge_ptr[-1], columns), dtype=id_dtype(self.store.manifest.graph.slots))
        if with_walks:
            walks = np.empty((ids.size, want.walk_entries), dtype=want.local_dtype)
        for block, rows, local in pieces:
            places = (local, rows, chosen, shape)
            fault = copy_nodes(block["nodes"], block["node_ptr"], ids, *places, self.store.num_nodes, node_ptr, nodes)
            self._check(fault, block)
            if edges is not None:
                fault = copy_edges(block["edges"], block["edge_ptr"], *places, node_ptr, edge_ptr, edges)
                self._check(fault, block)
            if slots is not None:
                fault = self._copy_slots(block, places, edge_ptr, slots)
                self._check(fault, block)
            if walks is not None:
                self._check(copy_walks(block["walks"], *places, node_ptr, walks), block)
            self.store.trim()
        return TokenBatch(want, ids, nodes, node_ptr, edges, edge_ptr if with_edges else None, slots, walks)

    def _copy_slots(self, block: "Block", places: tuple[Array, ...], edge_ptr: Array, slots: Array) -> tuple[int, int]:
        from gmn_pipeline.store.reading.gather import copy_slots

        count = self.store.manifest.graph.slots
        fault: tuple[int, int] = copy_slots(block["edge_slots"], block["edge_ptr"], *places, count, edge_ptr, slots)
        return fault

    def blocks(self, *, parts: Sequence[Part] = ("edges", "walks")) -> Iterator[TokenBatch]:
        """All nodes' tokens, block by block in storage order; each page is touched once and then given back."""
        pointer = self.store.block_ptr
        for number in range(pointer.size - 1):
            yield self.gather(np.arange(pointer[number], pointer[number + 1]), parts=parts)
            self.store.forget(number)

    def _groups(self, ids: IntArray) -> list[IntArray]:
        """Rows of a batch in groups whose blocks fit into the room of a far store's cache; none for a near one."""
        room = self.store.storage.room
        if room is None:
            return []
        block_of = np.searchsorted(self.store.block_ptr, ids, side="right") - 1
        touched = np.unique(block_of)
        self.store.expect_blocks(touched.tolist())
        numbers, held = [0], 0
        for size in map(self.store.block_bytes, touched.tolist()):
            full = held > 0 and held + size > room
            held = size if full else held + size
            numbers.append(numbers[-1] + full)
        group_of = np.array(numbers[1:], dtype=np.int64)[np.searchsorted(touched, block_of)]
        return [np.flatnonzero(group_of == number) for number in range(numbers[-1] + 1)]

    def _pieces(self, ids: IntArray) -> Iterator[tuple["Block", IntArray, IntArray]]:
        """Per touched block: the block, the rows of the batch it fills, and their nodes' places in the block."""
        pointer = self.store.block_ptr
        block_of = np.searchsorted(pointer, ids, side="right") - 1
        order = np.argsort(block_of, kind="stable")
        touched, starts = np.unique(block_of[order], return_index=True)
        self.store.expect_blocks(touched.tolist())
        for number, first, end in zip(touched.tolist(), starts, [*starts[1:], ids.size], strict=False):
            rows = order[first:end]
            yield self.store.block(number), rows, ids[rows] - pointer[number]

    def _check_ids(self, node_ids: Array | Sequence[int]) -> IntArray:
        ids = np.asarray(node_ids)
        if ids.size == 0:
            return np.zeros(0, dtype=np.int64)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise ConfigError(f"node ids must be a one-dimensional array of integers, found {ids.dtype} {ids.shape}")
        if ids.min() < 0 or ids.max() >= self.store.num_nodes:
            raise ConfigError(
                f"node ids {ids.min()}..{ids.max()} asked for; the store has 0..{self.store.num_nodes - 1}"
            )
        return np.ascontiguousarray(ids, dtype=np.int64)

    def _check_repeats(self, repeats: Array | None, batch: int) -> IntArray:
        m, s = self.settings.m, self.settings.s
        if repeats is None:
            return np.broadcast_to(np.arange(s, dtype=np.int64), (1, m, s)).copy()
        chosen = np.ascontiguousarray(repeats, dtype=np.int64)
        if chosen.shape not in ((batch, m, s), (1, m, s)):
            raise ConfigError(f"repeats has shape {chosen.shape}; it must be ({batch} or 1, m={m}, s={s})")
        if chosen.size and (chosen.min() < 0 or chosen.max() >= self.store.settings.s):
            raise ConfigError(f"repeats {chosen.min()}..{chosen.max()}; the store has 0..{self.store.settings.s - 1}")
        return chosen

    def _check(self, fault: tuple[int, int], block: "Block") -> None:
        code, token = fault
        if code:
            array, what = FAULTS[code]
            raise StoreCorruptError(
                f"{self.store.path}/tokens/{block_name(block.number)}/{array}: {what} in token {token}; run gmn-prep "
                "verify on the store, then restore it or tokenize again"
            )
