"""An immutable graph, or many graphs as one disjoint union, with features, labels, splits and a task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gmn_pipeline.errors import GraphError
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array, IntArray

if TYPE_CHECKING:
    from gmn_pipeline.graph.edges import EdgeReport

TRAIN, VAL, TEST = 1, 2, 3
"""Codes of `Graph.splits`; 0 means that a split does not use the item."""

INT32_MAX = int(np.iinfo(np.int32).max)


MOST_ISOLATED = 1_000_000
"""Nodes that a graph without features may have beyond a hundred per edge: more than that is a slip, and memory."""
_ROWS_AT_A_TIME = 1 << 18
"""Rows looked at together where all at once would need as much memory as the graph."""


def id_dtype(count: int) -> np.dtype[Any]:
    """The type of ids below `count`: int32 until that does not suffice, then int64."""
    return np.dtype(np.int32 if count <= INT32_MAX else np.int64)


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
    """Categories per column of an integer `x`; found from the data unless given."""
    edge_categories: tuple[int, ...] | None = None
    """The same for an integer `edge_attr`."""
    report: "EdgeReport | None" = field(default=None, compare=False)
    """What `from_edges` dropped and added."""

    def __post_init__(self) -> None:
        for name, dtype in (("indptr", np.dtype(np.int64)), ("graph_ptr", np.dtype(np.int64))):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _integers(name, value, dtype))
        _check_pointer("indptr", self.indptr, np.asarray(self.indices).size)
        object.__setattr__(self, "indices", _integers("indices", self.indices, id_dtype(self.num_nodes)))
        _check_ids("indices", self.indices, self.num_nodes)
        if self.graph_ptr is not None:
            _check_pointer("graph_ptr", self.graph_ptr, self.num_nodes)
        if self.pairs is not None:
            object.__setattr__(self, "pairs", _integers("pairs", self.pairs, id_dtype(self.num_nodes)))
            if self.pairs.ndim != 2 or self.pairs.shape[1] != 2:
                raise GraphError(f"pairs has shape {self.pairs.shape}; it must be (items, 2)")
            _check_ids("pairs", self.pairs, self.num_nodes)
        self._settle_features("x", "x_categories", self.num_nodes)
        self._settle_features("edge_attr", "edge_categories", self.num_slots)
        self._settle_labels()
        self._settle_splits()
        for name in ("indptr", "indices", "x", "edge_attr", "y", "splits", "graph_ptr", "pairs"):
            value = getattr(self, name)
            if value is not None and value.flags.writeable:
                value = value.view()
                value.flags.writeable = False
                object.__setattr__(self, name, value)

    def _settle_features(self, name: str, categories_name: str, rows: int) -> None:
        value = getattr(self, name)
        if value is None:
            object.__setattr__(self, categories_name, None)
            return
        value = np.asarray(value)
        if value.ndim == 1:
            value = value[:, None]
        if value.ndim != 2 or value.shape[0] != rows:
            raise GraphError(f"{name} has shape {value.shape}; it must have {rows:,} rows, one per {_ROW[name]}")
        if value.dtype.kind == "f":
            value = value.astype(np.float32, copy=False)
            object.__setattr__(self, categories_name, None)
        elif value.dtype.kind in "iub":
            value = _integers(name, value, np.dtype(np.int32))
            if getattr(self, categories_name) is None:
                found = value.max(axis=0, initial=-1).astype(np.int64) + 1
                object.__setattr__(self, categories_name, tuple(int(c) for c in found))
        else:
            raise GraphError(f"{name} is of type {value.dtype}; features are floats, or integers for categories")
        object.__setattr__(self, name, value)

    def _settle_labels(self) -> None:
        if self.y is None:
            return
        if self.task is None:
            raise GraphError("labels are given without a task; pass task=Task.of(level, kind, classes)")
        value = np.asarray(self.y)
        if self.task.kind in ("multiclass", "binary"):
            if value.ndim == 2 and value.shape[1] == 1:
                value = value[:, 0]
            if value.dtype.kind == "f":
                if not np.all(np.isnan(value) | (value == np.floor(value))):
                    raise GraphError(f"labels of a {self.task.kind} task must be whole numbers; found fractions")
                value = np.where(np.isnan(value), -1, value)
            value = value.astype(np.int64, copy=False)
            wanted: tuple[int, ...] = (self.num_items,)
        else:
            value = value.astype(np.float32, copy=False)
            if value.ndim == 1:
                value = value[:, None]
            wanted = (self.num_items, self.task.classes)
        if value.shape != wanted:
            raise GraphError(f"labels have shape {value.shape}; a {self.task.kind} task on these items needs {wanted}")
        object.__setattr__(self, "y", value)

    def _settle_splits(self) -> None:
        if self.splits is None:
            return
        value = np.atleast_2d(np.asarray(self.splits))
        if value.ndim != 2 or value.shape[1] != self.num_items:
            raise GraphError(f"splits has shape {value.shape}; it must be (splits, {self.num_items:,} items)")
        object.__setattr__(self, "splits", _integers("splits", value, np.dtype(np.uint8)))

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
        level = self.task.level if self.task else "node"
        if level == "link":
            if self.pairs is None:
                raise GraphError("a link task needs pairs, (items, 2) node ids")
            return len(self.pairs)
        return self.num_graphs if level == "graph" else self.num_nodes

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
        same = self.indices[1:] == self.indices[:-1]
        borders = self.indptr[1:-1]
        same[borders[(borders > 0) & (borders < self.num_slots)] - 1] = False
        return not same.any()

    def arrays(self) -> dict[str, Array]:
        """The arrays that are there, by name, in the order of the store format."""
        names = ("indptr", "indices", "x", "edge_attr", "y", "splits", "graph_ptr", "pairs")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def __repr__(self) -> str:
        parts = [f"{self.num_nodes:,} nodes", f"{self.num_edges:,} {'directed ' * self.directed}edges"]
        if self.graph_ptr is not None:
            parts.insert(0, f"{self.num_graphs:,} graphs")
        parts += [f"{k} {v.shape} {v.dtype}" for k, v in self.arrays().items() if k in ("x", "edge_attr", "y")]
        if self.splits is not None:
            parts.append(f"{len(self.splits)} splits")
        if self.task is not None:
            parts.append(f"{self.task.level} {self.task.kind} ({self.task.metric})")
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
        num_nodes: largest id + 1 unless given. edge_attr: one row per given edge; a mirrored slot takes its edge's.
        Edges are symmetrised, sorted and de-duplicated and self-loops dropped unless asked otherwise; `report` counts
        what was done. Other fields as in the class.
        """
        from gmn_pipeline.graph.edges import csr_from_edges

        src, dst = _edge_columns(edges)
        found = int(max(src.max(initial=-1), dst.max(initial=-1))) + 1
        n = found if num_nodes is None else num_nodes
        if found > n or min(src.min(initial=0), dst.min(initial=0)) < 0:
            low = int(min(src.min(initial=0), dst.min(initial=0)))
            raise GraphError(f"edges name nodes {low}..{found - 1}; with {n:,} nodes, ids are 0..{n - 1}")
        if fields.get("x") is None and n > MOST_ISOLATED + 100 * src.size:
            raise GraphError(
                f"{n:,} nodes with only {src.size:,} edges: names rather than numbers from 0; number the nodes, or "
                "give x if they are so many"
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


_ROW: Mapping[str, str] = {"x": "node", "edge_attr": "CSR slot"}


def _integers(name: str, value: Array, dtype: np.dtype[Any]) -> IntArray:
    """`value` as `dtype`, refusing anything that would change it."""
    value = np.asarray(value)
    if value.dtype == dtype:
        return value
    if value.dtype.kind not in "iub":
        raise GraphError(f"{name} is of type {value.dtype}; it must hold integers")
    limits = np.iinfo(dtype)
    if value.size and (value.min() < limits.min or value.max() > limits.max):
        raise GraphError(f"{name} holds {value.min()}..{value.max()}, outside {dtype}'s {limits.min}..{limits.max}")
    return value.astype(dtype)


def _check_pointer(name: str, pointer: IntArray, total: int) -> None:
    if pointer.ndim != 1 or pointer.size < 1:
        raise GraphError(f"{name} has shape {pointer.shape}; it must be one-dimensional with at least one entry")
    if pointer[0] != 0 or pointer[-1] != total:
        raise GraphError(f"{name} runs from {pointer[0]} to {pointer[-1]}; it must run from 0 to {total}")
    down = pointer[1:] < pointer[:-1]  # compared, not subtracted: a difference of int64 may wrap around
    if down.any():
        raise GraphError(f"{name} goes down at entry {int(np.argmax(down)) + 1}; it must never decrease")


def _check_ids(name: str, ids: IntArray, n: int) -> None:
    if ids.size and (ids.min() < 0 or ids.max() >= n):
        raise GraphError(f"{name} holds node ids {ids.min()}..{ids.max()}; with {n:,} nodes, ids are 0..{n - 1}")


def _edge_columns(edges: Array | Sequence[Any]) -> tuple[IntArray, IntArray]:
    edges = np.asarray(edges)
    if edges.size == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if edges.ndim != 2 or 2 not in edges.shape:
        raise GraphError(f"edges has shape {edges.shape}; it must be (E, 2) or (2, E)")
    if edges.dtype.kind not in "iu":
        raise GraphError(f"edges is of type {edges.dtype}; node ids are integers")
    columns = edges.T if edges.shape[1] == 2 else edges
    src, dst = (np.ascontiguousarray(c, dtype=np.int64) for c in columns)
    return src, dst
