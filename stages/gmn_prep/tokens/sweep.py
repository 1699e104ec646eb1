"""Tokens of a graph that is larger than memory: many nodes at a time, each step one pass over the graph in order.

Nodes are taken in spans of several blocks. Their walks go on together (`sweep_kernel.py`), then the nodes they met and
the pairs among these are copied into memory, renumbered in the same order, and the usual kernel makes the tokens.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gmn_pipeline.counter_random import Purpose, root_key
from gmn_pipeline.graph import Graph
from gmn_pipeline.graph.pairs import Pairs
from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_pipeline.store.writing.verbs import BlockArrays
from gmn_pipeline.types import Array, IntArray
from gmn_prep.tokens.sweep_kernel import list_marked, mark_nodes, order_walkers, renumber, take_steps
from gmn_prep.tokens.tokenizer import Tokenizer
from gmn_prep.tokens.walks import WALK_LAWS, walk_offsets

BUCKETS = 1 << 16
"""Walkers are sorted by the part of the graph they stand in, this many parts."""
PIECES = 8
"""A round is cut into this many pieces per thread, which read neighbouring parts of the graph."""


@dataclass(frozen=True)
class Span:
    """The nodes first .. last, in a graph that holds no more than their walks met."""

    first: int
    last: int
    names: IntArray
    """(nodes,) what each node is called in the whole graph, ascending."""
    tokenizer: Tokenizer
    shift: int
    """Node first is node `first - shift` here; the walks of the tokenizer begin with it."""


class SweepTokenizer:
    """As `Tokenizer`, for an undirected graph without edge features, mapped from disk. The bytes are the same."""

    def __init__(self, tokenizer: Tokenizer, memory: int, threads: int) -> None:
        """memory: bytes that a span may take. threads: those of the pools that `block` is given."""
        self.threads = threads
        self.graph, self.settings, self.pairs = tokenizer.graph, tokenizer.settings, tokenizer.pairs
        self.memory, self.bytes_per_node = memory, float(span_bytes_per_node(tokenizer))
        self._span: Span | None = None

    @property
    def span_nodes(self) -> int:
        """How many nodes the next span takes. Its walkers are counted in int32."""
        t = self.settings
        return max(1, min(int(self.memory / self.bytes_per_node), (2**31 - 1) // max(1, t.s * t.M * t.m)))

    def block(
        self, first: int, last: int, pool: ThreadPoolExecutor, on_nodes: Callable[[int], None] | None = None
    ) -> BlockArrays:
        """The tokens of nodes first..last-1. Blocks are best asked for in order: a span holds the next ones too."""
        span = self._span
        if span is None or not span.first <= first <= last <= span.last:
            span = self._span = None  # before the next is made: two would take twice the memory
            end = max(last, min(self.graph.num_nodes, first + self.span_nodes))
            span = self._span = self._take_span(first, end, pool)
        block = span.tokenizer.block(first - span.shift, last - span.shift, pool, on_nodes)
        return replace(block, first_node=first, nodes=span.names[block.nodes])

    def _take_span(self, first: int, last: int, pool: ThreadPoolExecutor) -> Span:
        graph, pairs = self.graph, self.pairs
        walks = sweep_walks(graph, self, first, last, pool)
        words = graph.num_nodes // 64 + 1
        bits, before = np.empty(words, np.uint64), np.empty(words, np.int64)
        names = np.empty(mark_nodes(first, walks, bits, before), graph.indices.dtype)
        pointer = np.empty(names.size + 1, np.int64)
        other = np.empty(list_marked(bits, pairs.pointer, names), graph.indices.dtype)
        count = renumber(bits, before, names, pairs.pointer, pairs.other, walks, pointer, other)
        none = np.empty(0, pairs.out_slot.dtype)
        for array in (pointer, other, none):
            array.flags.writeable = False
        self._learn(last - first, walks.nbytes, names.nbytes + pointer.nbytes + count * other.itemsize)
        start = int(np.searchsorted(names, first))
        small = Graph(np.zeros(names.size + 1, np.int64), np.empty(0, graph.indices.dtype))  # walks need no edges now
        tokenizer = Tokenizer(small, self.settings, Pairs(pointer, other[:count], none, none), walks, start)
        return Span(first, last, names, tokenizer, first - start)

    def _learn(self, nodes: int, walks: int, met: int) -> None:
        """What a node of the last span took, of which the next one's size follows.

        Walks meet hubs again and again, so a node takes a third of what it would if none were met twice, and the more
        nodes a span has, the less each. A span has at most four times the nodes of the one before.
        """
        taken = (walks + max(met, 4 * nodes * self.settings.s * self.settings.M * self.settings.m)) / nodes
        self.bytes_per_node = max(1.1 * taken, self.bytes_per_node / 4)


def span_bytes_per_node(tokenizer: Tokenizer) -> int:
    """What one node of the first span may take."""
    graph = tokenizer.graph
    pairs = tokenizer.pairs.other.size / max(1, graph.num_nodes)
    return span_node_bytes(tokenizer.settings, graph.indices.dtype.itemsize, pairs)


def span_node_bytes(t: TokenSettings, size: int, pairs: float) -> int:
    """Walks, walkers, and the nodes and pairs that one node's walks meet, if none is met twice.

    size: bytes of a node id. pairs: linked pairs per node.
    """
    return int(t.walk_entries * size + 4 * t.s * t.M * t.m + (1 + t.walk_entries) * (8 + size * (1 + pairs)))


def sweep_walks(graph: Graph, tokenizer: SweepTokenizer, first: int, last: int, pool: ThreadPoolExecutor) -> Array:
    """The walks of nodes first..last-1 as node ids, (last-first, W): those of `sample_walks`."""
    t = tokenizer.settings
    law, root, offsets = WALK_LAWS[t.walk], root_key(t.seed, Purpose.WALK), walk_offsets(t.m, t.M, t.s)
    out = np.empty((last - first, t.walk_entries), graph.indices.dtype)
    order = np.empty((last - first) * offsets.size, np.int32)
    shift = max(0, (graph.num_nodes - 1).bit_length() - BUCKETS.bit_length() + 1)
    start = np.empty((max(graph.num_nodes - 1, 0) >> shift) + 2, np.int64)
    for step in range(t.m):
        count = order_walkers(first, step, offsets.size - t.s * t.M * step, offsets, out, shift, start, order)
        cuts = np.linspace(0, count, 1 + PIECES * tokenizer.threads).astype(int)

        def move(walkers: IntArray, step: int = step) -> None:
            take_steps(graph.indptr, graph.indices, root, law, first, step, t.m, t.M, t.s, offsets, walkers, out)

        list(pool.map(move, [order[a:b] for a, b in pairwise(cuts)]))
    return out
