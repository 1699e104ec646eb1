"""Turns ranges of nodes into blocks of tokens, on several threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gmn_pipeline.counter_random import Purpose, root_key
from gmn_pipeline.graph import Graph, id_dtype
from gmn_pipeline.graph.pairs import Pairs, linked_pairs
from gmn_pipeline.store.format.token_settings import TokenSettings, smallest_unsigned
from gmn_pipeline.store.writing.verbs import BlockArrays
from gmn_pipeline.types import Array
from gmn_prep.tokens.token_kernel import tokenize_range
from gmn_prep.tokens.walks import WALK_LAWS

NODES_PER_TASK = 512
"""Small enough to balance hubs between threads, large enough that calling the kernel costs nothing."""


@dataclass(frozen=True)
class Tokenizer:
    """Everything the kernel needs of one graph. A block depends on the graph, the settings and its nodes alone."""

    graph: Graph
    settings: TokenSettings
    pairs: Pairs
    walks: Array | None = None
    """(nodes, W) the walks of some nodes as node ids, if they were taken before."""
    walks_from: int = 0
    """The node that those walks begin with."""

    @classmethod
    def of(cls, graph: Graph, settings: TokenSettings, pairs: Pairs | None = None) -> "Tokenizer":
        """pairs: those of the graph, if they were found before; their pointers and ids are checked."""
        with_slots = graph.directed or graph.edge_attr is not None
        if pairs is None:
            return cls(graph, settings, linked_pairs(graph, with_slots=with_slots))
        pairs.check(graph.num_nodes, graph.num_slots if with_slots else 0)
        return cls(graph, settings, pairs)

    def block(
        self, first: int, last: int, pool: ThreadPoolExecutor, on_nodes: Callable[[int], None] | None = None
    ) -> BlockArrays:
        """The tokens of nodes first..last-1; `on_nodes(count)` reports nodes as they are done."""
        graph, t = self.graph, self.settings
        count, length = last - first, self.settings.sequence_length
        walks = np.empty((count, t.walk_entries), t.local_dtype)
        sizes = np.empty((count * length, t.M), t.local_dtype)
        edge_sizes = np.empty((count * length, t.M), smallest_unsigned(t.max_token_edges(graph.directed)))
        node_count, edge_count = np.zeros(count * length, np.int64), np.zeros(count * length, np.int64)
        root, law = root_key(t.seed, Purpose.WALK), WALK_LAWS[t.walk]
        keep_slots = graph.edge_attr is not None
        given = np.empty((0, 0), graph.indices.dtype) if self.walks is None else self.walks[first - self.walks_from :]

        def run(begin: int) -> tuple[Array, Array, Array]:
            end = min(begin + NODES_PER_TASK, last)
            rows = slice(begin - first, end - first)
            tokens = slice(rows.start * length, rows.stop * length)
            return tokenize_range(
                graph.indptr, graph.indices, self.pairs.pointer, self.pairs.other,
                self.pairs.out_slot, self.pairs.back_slot, root, law, graph.directed, keep_slots,
                begin, end, t.m, t.M, t.s, given[rows],
                walks[rows], sizes[tokens], edge_sizes[tokens], node_count[tokens], edge_count[tokens],
            )  # fmt: skip

        pieces = []
        starts = range(first, last, NODES_PER_TASK)
        for begin, piece in zip(starts, pool.map(run, starts), strict=True):
            pieces.append(piece)
            if on_nodes is not None:
                on_nodes(min(NODES_PER_TASK, last - begin))
        nodes, edges, slots = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        return BlockArrays(
            first_node=first,
            nodes=nodes,
            node_ptr=_pointer(node_count, len(nodes)),
            edges=edges,
            edge_ptr=_pointer(edge_count, len(edges)),
            walks=walks,
            sizes=sizes,
            edge_sizes=edge_sizes,
            edge_slots=slots if keep_slots else None,
        )


def _pointer(counts: Array, total: int) -> Array:
    pointer = np.zeros(counts.size + 1, id_dtype(total))
    np.cumsum(counts, out=pointer[1:])
    return pointer
