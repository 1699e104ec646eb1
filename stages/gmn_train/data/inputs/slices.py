"""Inputs of some rows of one large graph in full: what a grain computes where a graph is cut over several.

Rows stand in scan order, so that a grain's rows are a piece of the scan. Tokens and edges point to rows of the whole
graph, which layers gather from the other grains.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.types import Array, IntArray
from gmn_train.data.inputs.record import ModelInputs, Neighbourhood, NodeOrder, csr_matrix
from gmn_train.data.inputs.rows import concatenate_ranges
from gmn_train.data.inputs.source import InputSource, gather_tokens, node_tensors, scan_order
from gmn_train.data.read_ahead import Clock
from gmn_train.data.token_chunks import TokenChunk, cut_chunks


@dataclass(frozen=True)
class RowNeighbourhood(Neighbourhood):
    """Edges into a grain's own rows. Rows: the own ones first, then the others that they read."""

    own: int
    read: Tensor
    """(rows,) int64: which rows of the whole graph they are."""
    degrees: Tensor
    """(rows,) edges into each in the whole graph, one more where it lacks an edge to itself."""
    loops: Tensor
    """(own,) bool: whether a row has an edge to itself."""

    @property
    def targets(self) -> int:
        return self.own

    @cached_property
    def gcn_matrix(self) -> tuple[Tensor, Tensor]:
        """The own rows of D^-1/2 (A + I) D^-1/2, (own, rows), and their transpose."""
        lacking = (~self.loops).nonzero().T.expand(2, -1)
        source, target = torch.cat([self.edge_index, lacking], 1)
        root = self.degrees.rsqrt()
        entries, weight, shape = torch.stack([target, source]), root[source] * root[target], (self.own, self.rows)
        return csr_matrix(entries, weight, shape), csr_matrix(entries.flip(0), weight, shape[::-1])


class SlicedGraph:
    """One epoch's view of a graph whose rows are cut: the scan order, and each grain's inputs."""

    def __init__(self, source: InputSource, epoch: int | None) -> None:
        self.source, self.epoch = source, epoch
        nodes = source.graph.num_nodes
        everything = np.arange(nodes)
        order = scan_order(source, everything, np.zeros(nodes, np.int64), np.array([0, nodes]), epoch)
        self.ids = order.rows.numpy()
        """(n,) the node at each row."""
        self.row_of = order.places.numpy()
        """(n,) the row of each node."""

    def inputs(
        self,
        lo: int,
        hi: int,
        *,
        chunk_nodes: int | None = None,
        keep_tokens: bool = True,
        pairs: Array | None = None,
        clock: Clock | None = None,
    ) -> ModelInputs:
        """Of rows lo..hi-1; arguments as `whole_inputs` has them, pairs any of the graph's."""
        source, ids = self.source, self.ids[lo:hi]
        near, slots = self._near(ids)
        edge_attr = source.edge_features(slots) if source.reads_edges else None
        first_edge = len(slots)
        if edge_attr is not None and source.reads_tokens and source.all_edge_attr is not None:
            edge_attr = torch.cat([edge_attr, source.all_edge_attr])  # those that tokens read, by slot

        def load(rows: slice) -> TokenChunk:
            batch = gather_tokens(source, ids[rows], self.epoch)
            edge_rows = None if batch.edge_slots is None or not source.reads_edges else batch.edge_slots + first_edge
            nodes, n = self.row_of[batch.nodes], len(self.ids)
            return TokenChunk.of(batch, nodes, edge_rows, rows=n, directed=source.graph.directed, first=rows.start)

        step = len(ids) if chunk_nodes is None else min(chunk_nodes, -(-len(ids) // 2))  # two: computed again
        tokens: Sequence[TokenChunk] = ()
        if source.reads_tokens and len(ids):
            tokens = cut_chunks(len(ids), step, load, keep=keep_tokens, clock=clock)
        one = np.zeros(len(ids), np.int64)
        return ModelInputs(
            settings=source.view.settings,
            node_ids=torch.from_numpy(ids),
            targets=len(ids),
            **node_tensors(source, ids, one[:1], one, self.epoch),
            near=near,
            edge_attr=edge_attr,
            order=NodeOrder(torch.arange(len(ids)), torch.tensor([0, len(ids)])),
            tokens=tokens,
            pairs=None if pairs is None else torch.from_numpy(self.row_of[np.asarray(pairs, np.int64)]),
        )

    def _near(self, ids: IntArray) -> tuple[RowNeighbourhood, IntArray]:
        """The edges into some nodes, and their CSR slots."""
        edges = self.source.all_edges.edge_order
        counts = edges.target_ptr[ids + 1] - edges.target_ptr[ids]
        places = concatenate_ranges(edges.target_ptr[ids], counts)
        senders, target = edges.sources[places], np.repeat(np.arange(len(ids)), counts)
        row_of = np.full(len(self.ids), -1)  # by node
        row_of[ids] = np.arange(len(ids))
        others = np.unique(senders[row_of[senders] < 0])
        row_of[others] = len(ids) + np.arange(len(others))
        read = np.concatenate([ids, others])
        loops = np.zeros(len(ids), bool)
        loops[target[senders == ids[target]]] = True
        degrees = edges.target_ptr[read + 1] - edges.target_ptr[read] + ~self._loops[read]
        near = RowNeighbourhood(
            torch.from_numpy(np.stack([row_of[senders], target])),
            len(read),
            False,
            len(ids),
            torch.from_numpy(self.row_of[read]),
            torch.from_numpy(degrees),
            torch.from_numpy(loops),
        )
        return near, edges.edges[places]

    @cached_property
    def _loops(self) -> IntArray:
        """(n,) whether a node has an edge to itself."""
        edges = self.source.all_edges.edge_order
        loops = np.zeros(len(self.ids), bool)
        loops[edges.targets[edges.targets == edges.sources]] = True
        return loops
