"""Tokens of some nodes as tensors, and a sequence of such chunks that is read from the store when it is used.

Shapes: B nodes of the chunk, L tokens each, T = B * L tokens, N entries of all their node lists, U rows of node states.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from gmn_pipeline.errors import ModelError
from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_pipeline.store.reading.view import TokenBatch
from gmn_pipeline.types import Array, IntArray
from gmn_train.data.read_ahead import Clock


@dataclass(frozen=True)
class TokenChunk:
    """The tokens of the nodes at rows first .. first + B of the inputs. Indices are checked when it is made."""

    settings: TokenSettings
    directed: bool
    first: int
    node_ids: Tensor
    """(B,) int64: the nodes' ids in their graph; they key the dropout."""
    rows: int
    """U: rows of node states that `nodes` may point to."""
    nodes: Tensor
    """(N,) int32 rows of node states, token by token, each token's own node first."""
    node_ptr: Tensor
    """(T+1,) int64: token t is nodes[node_ptr[t]:node_ptr[t+1]]."""
    edges: Tensor | None = None
    """(E, 2) unsigned: pairs of indices into the token's node list. Undirected: once each."""
    edge_ptr: Tensor | None = None
    """(T+1,) int64, as node_ptr."""
    edge_rows: Tensor | None = None
    """(E, 2) int64, or (E, 1) directed: rows of edge features of first -> second node, and back."""
    walks: Tensor | None = None
    """(B, W) unsigned: every walk as indices into its token's node list, as in TokenBatch."""

    def __post_init__(self) -> None:
        tokens = len(self.node_ids) * self.settings.sequence_length
        _check_pointer("node_ptr", self.node_ptr, tokens, len(self.nodes), least=1)
        if self.nodes.numel() and (int(self.nodes.min()) < 0 or int(self.nodes.max()) >= self.rows):
            raise ModelError(
                f"token nodes point to rows {int(self.nodes.min())}..{int(self.nodes.max())}; "
                f"there are {self.rows} rows of node states"
            )
        if self.edges is not None and self.edge_ptr is not None:
            _check_pointer("edge_ptr", self.edge_ptr, tokens, len(self.edges), least=0)
            self._check_local("edges", self.edges, self.edge_ptr.numpy())
        if self.walks is not None:
            if self.walks.shape != (len(self.node_ids), self.settings.walk_entries):
                raise ModelError(
                    f"walks has shape {tuple(self.walks.shape)}, expected "
                    f"({len(self.node_ids)} nodes, {self.settings.walk_entries} entries)"
                )
            self._check_local("walks", self.walks, walk_pointer(self.settings, len(self.node_ids)))

    def _check_local(self, name: str, indices: Tensor, pointer: Array) -> None:
        """Every index of token t, indices[pointer[t]:pointer[t+1]], must be below the token's size."""
        array = indices.numpy()
        if array.dtype.kind != "u":
            raise ModelError(f"{name} is {indices.dtype}; indices into a token's node list are unsigned")
        per_entry = array.size // max(int(pointer[-1]), 1)  # an edge has two indices
        if index_beyond_token(array.reshape(-1), pointer * per_entry, self.node_ptr.numpy()):
            raise ModelError(f"{name} holds an index beyond its token's nodes; was the batch changed after gathering?")

    def __len__(self) -> int:
        return len(self.node_ids)

    @property
    def length(self) -> int:
        """L: tokens per node."""
        return self.settings.sequence_length

    @property
    def largest(self) -> int:
        """Nodes of the largest token."""
        return int(self.node_ptr.diff().max()) if len(self.node_ptr) > 1 else 1

    def to(self, device: torch.device | str) -> "TokenChunk":
        """The same on another device."""
        moved: TokenChunk = move(self, device)
        return moved

    @classmethod
    def of(
        cls, batch: TokenBatch, nodes: Array, edge_rows: Array | None, *, rows: int, directed: bool, first: int = 0
    ) -> "TokenChunk":
        """Tensors of a gathered batch, its node ids and edge slots already turned into `nodes` and `edge_rows`."""
        return cls(
            settings=batch.settings,
            directed=directed,
            first=first,
            node_ids=_tensor(batch.node_ids, np.int64),
            rows=rows,
            nodes=_tensor(nodes, np.int32),
            node_ptr=_tensor(batch.node_ptr, np.int64),
            edges=None if batch.edges is None else torch.from_numpy(batch.edges),
            edge_ptr=None if batch.edge_ptr is None else _tensor(batch.edge_ptr, np.int64),
            edge_rows=None if edge_rows is None else _tensor(edge_rows, np.int64),
            walks=None if batch.walks is None else torch.from_numpy(batch.walks),
        )


def chunk_sizes(chunks: Sequence[TokenChunk]) -> Sequence[int]:
    """Nodes of each chunk, without loading any."""
    return chunks.sizes if isinstance(chunks, LazyChunks) else [len(chunk) for chunk in chunks]


def cut_chunks(
    rows: int, step: int, load: Callable[[slice], TokenChunk], *, keep: bool, clock: Clock | None = None
) -> Sequence[TokenChunk]:
    """The tokens of `rows` nodes, `step` nodes at a time: loaded now and kept, or each time they are asked for."""
    parts = [slice(first, min(first + step, rows)) for first in range(0, rows, step)]
    if keep:
        return tuple(map(load, parts))
    return LazyChunks([part.stop - part.start for part in parts], lambda number: load(parts[number]), clock)


class LazyChunks(Sequence[TokenChunk]):
    """Chunks that `load(number)` makes each time they are asked for, the same each time.

    So a whole graph's tokens are used in bounded memory, and the backward pass reads a chunk again. Two chunks are in
    memory: the last one asked for and, with `ahead`, the one after it, which a thread makes meanwhile; passes go from
    the first chunk to the last, so after the last comes the first. clock: counts the seconds a caller stands still.
    """

    def __init__(
        self, sizes: Sequence[int], load: Callable[[int], TokenChunk], clock: Clock | None = None, *, ahead: bool = True
    ) -> None:
        self.sizes, self.load, self._clock = sizes, load, clock or Clock()
        self._held: tuple[int, TokenChunk] | None = None
        self._coming: tuple[int, Future[TokenChunk]] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chunks") if ahead and len(sizes) > 1 else None

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, number):  # type: ignore[no-untyped-def]
        if not 0 <= number < len(self.sizes):
            raise IndexError(number)  # also ends iteration
        held = self._held
        if held is None or held[0] != number:
            coming, self._held, self._coming = self._coming, None, None
            with self._clock.waiting():
                chunk = coming[1].result() if coming is not None and coming[0] == number else self.load(number)
            held = self._held = (number, chunk)
            if self._thread is not None:
                following = (number + 1) % len(self.sizes)
                self._coming = (following, self._thread.submit(self.load, following))
        return held[1]

    def __iter__(self) -> Iterator[TokenChunk]:
        return (self[i] for i in range(len(self.sizes)))


def move(record: Any, device: torch.device | str) -> Any:
    """A frozen dataclass with its tensors moved to `device`, unchecked: it was checked when it was made."""
    moved = object.__new__(type(record))
    for f in fields(record):
        value = getattr(record, f.name)
        object.__setattr__(moved, f.name, value.to(device) if isinstance(value, Tensor) else value)
    return moved


def _tensor(array: Array, dtype: type) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=dtype))


def _check_pointer(name: str, pointer: Tensor, tokens: int, total: int, least: int) -> None:
    if pointer.dtype != torch.int64 or tuple(pointer.shape) != (tokens + 1,):
        raise ModelError(f"{name} is {pointer.dtype} {tuple(pointer.shape)}, expected int64 ({tokens} tokens + 1,)")
    if int(pointer[0]) != 0 or int(pointer[-1]) != total:
        raise ModelError(f"{name} runs from {int(pointer[0])} to {int(pointer[-1])}, expected from 0 to {total}")
    if tokens and int(pointer.diff().min()) < least:
        raise ModelError(f"{name}: token {int(pointer.diff().argmin())} has fewer than {least} entries")


def walk_pointer(settings: TokenSettings, nodes: int) -> IntArray:
    """(T+1,) where each token's walks begin among all entries of (nodes, W) walks."""
    entries = np.append(np.repeat(np.arange(settings.m, 0, -1), settings.s) * settings.M, 0)  # (L,)
    return np.append(0, np.cumsum(np.tile(entries, nodes)))


@njit(cache=True, nogil=True)
def index_beyond_token(indices, pointer, node_ptr):  # type: ignore[no-untyped-def]
    """Whether an index of a token, indices[pointer[t]:pointer[t+1]], is not below its number of nodes."""
    beyond = False
    for t in range(pointer.size - 1):
        size = node_ptr[t + 1] - node_ptr[t]
        for i in range(pointer[t], pointer[t + 1]):
            beyond |= np.int64(indices[i]) >= size
    return beyond
