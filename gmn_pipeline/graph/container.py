"""An immutable graph, or many graphs as one disjoint union, with features, labels, splits and a task."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gmn_pipeline.errors import GraphError
from gmn_pipeline.graph.settle import edge_columns, settle
from gmn_pipeline.graph.texts import Texts
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array, IntArray

if TYPE_CHECKING:
    from gmn_pipeline.graph.edges import EdgeReport

TRAIN, VAL, TEST = 1, 2, 3
"""Codes of `Graph.splits`; 0 means that a split does not use the item."""

ARRAYS = (
    *("indptr", "indices", "x", "edge_attr", "y", "splits", "graph_ptr", "pairs"),
    *("node_id_ptr", "node_id_bytes", "graph_id_ptr", "graph_id_bytes"),
)
MOST_ISOLATED = 1_000_000
"""Nodes that a graph without features may have beyond a hundred per edge: more than that is a slip, and memory."""
_ROWS_AT_A_TIME = 1 << 18
"""Rows looked at together where all at once would need as much memory as the graph."""


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph of n nodes in compressed sparse rows, sorted by neighbour within each row.

    Arrays are read-only. Build one from an edge list (`from_edges`), from CSR arrays (`from_csr`) or from PyG
    (`from_pyg`); the constructor only checks what indexing depends on.
    """

    indptr: IntArray
    """(n+1,) int64: the slots of node v are indptr[v] .. indptr[v+1]."""
    indices: IntArray
    """(E,) int32, or int64 where n needs it: the neighbour at each slot. An undirected edge has two slots."""
    x: Array | None = None
    """Node features: (n, F) float32, or int32 categories counted from 0."""
    edge_attr: Array | None = None
    """Edge features, row by row those of the slots: (E, F) float32, or int32 categories."""
    y: Array | None = None
    """Labels by item: (items,) int64, -1 where unknown; or (items, classes) float32, NaN where unknown."""
    splits: Array | None = None
    """(splits, items) uint8: 0 unused, 1 train, 2 validation, 3 test."""
    graph_ptr: IntArray | None = None
    """(graphs+1,) int64: graph g is nodes graph_ptr[g] .. graph_ptr[g+1]. None for one graph."""
    pairs: IntArray | None = None
    """(items, 2) node ids: the items of a link task."""
    task: Task | None = None
    directed: bool = False
    """False promises that every slot has its reverse."""
    x_categories: tuple[int, ...] | None = None
    """Categories per column of an integer `x`. Default: by the data."""
    edge_categories: tuple[int, ...] | None = None
    """The same for an integer `edge_attr`."""
    x_names: tuple[str, ...] | None = None
    """A name per column of `x`; `column=value` for each value of a column of text."""
    edge_names: tuple[str, ...] | None = None
    """The same for `edge_attr`."""
    node_id_ptr: IntArray | None = None
    """(n+1,) int64: what the user calls node v is node_id_bytes[node_id_ptr[v] : node_id_ptr[v+1]]. See `node_ids`."""
    node_id_bytes: Array | None = None
    """(bytes,) uint8, UTF-8. None where nodes are called by their numbers."""
    graph_id_ptr: IntArray | None = None
    """(graphs+1,) int64. See `graph_ids`."""
    graph_id_bytes: Array | None = None
    report: "EdgeReport | None" = field(default=None, compare=False)
    """What `from_edges` dropped and added."""

    def __post_init__(self) -> None:
        settle(self)

    @property
    def num_nodes(self) -> int:
        return self.indptr.size - 1

    @property
    def num_slots(self) -> int:
        """CSR slots: edges of a directed graph; an undirected edge between two nodes has two."""
        return self.indices.size

    @cached_property
    def num_edges(self) -> int:
        """Edges as people count them: an undirected edge is one."""
        if self.directed:
            return self.num_slots
        loops = 0
        for first in range(0, self.num_nodes, _ROWS_AT_A_TIME):
            rows = self.indptr[first : first + _ROWS_AT_A_TIME + 1]
            sources = np.repeat(np.arange(first, first + rows.size - 1), np.diff(rows))
            loops += int(np.count_nonzero(sources == self.indices[rows[0] : rows[-1]]))
        return (self.num_slots + loops) // 2

    @property
    def num_graphs(self) -> int:
        return 1 if self.graph_ptr is None else self.graph_ptr.size - 1

    @property
    def num_items(self) -> int:
        """How many things carry a label: nodes, graphs or pairs."""
        item = self.task.item if self.task else "node"
        if item == "link":
            if self.pairs is None:
                raise GraphError("a link task needs pairs, (items, 2) node ids")
            return len(self.pairs)
        return self.num_graphs if item == "graph" else self.num_nodes

    @cached_property
    def degrees(self) -> IntArray:
        """(n,) int64 slots per node."""
        return np.diff(self.indptr)

    @cached_property
    def slot_sources(self) -> IntArray:
        """(E,) the node each slot belongs to."""
        return np.repeat(np.arange(self.num_nodes, dtype=self.indices.dtype), self.degrees)

    @cached_property
    def is_simple(self) -> bool:
        """Whether no node lists a neighbour twice."""
        for first in range(0, self.num_nodes, _ROWS_AT_A_TIME):
            rows = self.indptr[first : first + _ROWS_AT_A_TIME + 1]
            slots = self.indices[rows[0] : rows[-1]]
            same = slots[1:] == slots[:-1]
            borders = rows[1:-1] - rows[0]
            same[borders[(borders > 0) & (borders < slots.size)] - 1] = False
            if same.any():
                return False
        return True

    @property
    def node_ids(self) -> Texts | None:
        """What the user calls the nodes; None where that is their numbers."""
        if self.node_id_ptr is None or self.node_id_bytes is None:
            return None
        return Texts(self.node_id_ptr, self.node_id_bytes)

    @property
    def graph_ids(self) -> Texts | None:
        """What the user calls the graphs; None where that is their numbers."""
        if self.graph_id_ptr is None or self.graph_id_bytes is None:
            return None
        return Texts(self.graph_id_ptr, self.graph_id_bytes)

    def with_ids(self, nodes: Sequence[object] | None = None, graphs: Sequence[object] | None = None) -> "Graph":
        """A copy whose nodes, or graphs, are called as the user calls them."""
        fields: dict[str, Any] = {}
        for name, ids in (("node_id", nodes), ("graph_id", graphs)):
            if ids is not None:
                texts = ids if isinstance(ids, Texts) else Texts.of(ids)
                fields |= {f"{name}_ptr": texts.ptr, f"{name}_bytes": texts.content}
        return self.replace(**fields)

    def arrays(self) -> dict[str, Array]:
        """The arrays that are there, by name, in the order of the store format."""
        return {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}

    def __repr__(self) -> str:
        parts = [f"{self.num_nodes:,} nodes", f"{self.num_edges:,} {'directed ' * self.directed}edges"]
        if self.graph_ptr is not None:
            parts.insert(0, f"{self.num_graphs:,} graphs")
        parts += [f"{k} {v.shape} {v.dtype}" for k, v in self.arrays().items() if k in ("x", "edge_attr", "y")]
        if self.splits is not None:
            parts.append(f"{len(self.splits)} splits")
        if self.task is not None:
            parts.append(f"{self.task.item} {self.task.kind} ({self.task.metric})")
        return f"Graph({', '.join(parts)})"

    def check(self) -> "Graph":
        """Check everything that the constructor leaves out because it reads every value; returns the graph itself.

        Rows sorted, edges within their graph, reverses there if undirected, features finite, categories and labels in
        range. Raises GraphError.
        """
        from gmn_pipeline.graph.check import check_graph

        check_graph(self)
        return self

    @classmethod
    def from_edges(
        cls,
        edges: Array,
        num_nodes: int | None = None,
        *,
        edge_attr: Array | None = None,
        directed: bool = False,
        keep_self_loops: bool = False,
        keep_duplicates: bool = False,
        **fields: Any,
    ) -> "Graph":
        """Build a graph from an edge list.

        edges: (E, 2) or PyG's (2, E) node ids (two edges given as (2, 2) are read as rows of (source, target)).
        num_nodes: default largest id + 1. edge_attr: one row per given edge; a mirrored slot takes its edge's.
        Edges are symmetrised, sorted and de-duplicated and self-loops dropped unless asked otherwise; `report` counts
        what was done. Other fields as in the class.
        """
        from gmn_pipeline.graph.edges import csr_from_edges

        src, dst = edge_columns(edges)
        least_nodes = int(max(src.max(initial=-1), dst.max(initial=-1))) + 1
        n = least_nodes if num_nodes is None else num_nodes
        if least_nodes > n or min(src.min(initial=0), dst.min(initial=0)) < 0:
            low = int(min(src.min(initial=0), dst.min(initial=0)))
            raise GraphError(f"edges name nodes {low}..{least_nodes - 1}; with {n:,} nodes, ids are 0..{n - 1}")
        x = fields.get("x")
        if x is not None and len(x) != n:
            raise GraphError(f"x has {len(x):,} rows for {n:,} nodes; it needs one per node")
        if x is None and n > MOST_ISOLATED + 100 * src.size:
            raise GraphError(
                f"{n:,} nodes with only {src.size:,} edges: names rather than numbers from 0; number the nodes, or "
                "give x if there really are so many"
            )
        if edge_attr is not None and len(edge_attr) != src.size:
            raise GraphError(f"edge_attr has {len(edge_attr):,} rows for {src.size:,} edges; it needs one per edge")
        indptr, indices, origin, report = csr_from_edges(
            src, dst, n, directed=directed, keep_self_loops=keep_self_loops, keep_duplicates=keep_duplicates
        )
        if edge_attr is not None:
            edge_attr = np.asarray(edge_attr)[origin]
        return cls(indptr, indices, edge_attr=edge_attr, directed=directed, report=report, **fields).check()

    @classmethod
    def from_csr(cls, indptr: Array, indices: Array, **fields: Any) -> "Graph":
        """Build a graph from CSR arrays that already are as the class describes, checking all of them."""
        return cls(np.asarray(indptr), np.asarray(indices), **fields).check()

    @classmethod
    def from_pyg(cls, data: Any, task: Task | None = None, **options: Any) -> "Graph":
        """Build a graph from a PyG `Data`, or many from a sequence of them. See `graph.pyg`."""
        from gmn_pipeline.graph.pyg import graph_from_pyg

        return graph_from_pyg(data, task, **options)

    def to_pyg(self) -> Any:
        """This graph as one PyG `Data` (many graphs stay a disjoint union, with `graph_ptr` and `batch` beside it)."""
        from gmn_pipeline.graph.pyg import graph_to_pyg

        return graph_to_pyg(self)

    def replace(self, **fields: Any) -> "Graph":
        """A copy with other fields."""
        return replace(self, **fields)
