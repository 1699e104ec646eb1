"""From many published graphs to one Graph.

Each attribute of all graphs is kept in one array, with node ids that start at 0 in each graph, and the borders
between graphs beside it. A disjoint union sorts graph by graph, so its CSR is made a piece of consecutive graphs at a
time: only one piece is ever in memory more than once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmn_pipeline.errors import GraphError
from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph, id_dtype
from gmn_pipeline.graph.edges import csr_from_edges
from gmn_pipeline.graph.settle import INT32_MAX
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array, IntArray

PARTS = {"train": TRAIN, "val": VAL, "test": TEST}
EDGES_AT_A_TIME = 4_000_000


@dataclass
class Collated:
    """Many graphs end to end: all parts of a dataset, one after the other."""

    node_ptr: IntArray
    """(graphs+1,) graph g has nodes node_ptr[g] .. node_ptr[g+1]."""
    edges: IntArray
    """(E, 2) ends, as ids within their graph."""
    edge_ptr: IntArray
    """(graphs+1,) graph g has edges edge_ptr[g] .. edge_ptr[g+1]."""
    part: Array
    """(graphs,) uint8: which part of the split each graph is in."""
    fields: dict[str, Array]
    """Other attributes end to end, as `x`, `edge_attr` and `y`."""
    ptrs: dict[str, IntArray]
    """(graphs+1,) borders between graphs in each of those."""

    @property
    def sizes(self) -> IntArray:
        """(graphs,) nodes of each graph."""
        return np.diff(self.node_ptr)


def collate(parts: Iterable[tuple[str, Iterable[Mapping[str, Array]]]]) -> Collated:
    """The graphs of each part of a split, one after the other.

    A graph is its attributes by name, `edge_index` (2, E) among them, with one row of `x` per node or `num_nodes`.
    Attributes are joined along their first axis, indices along their last, in 32 bits.
    """
    nodes: list[int] = []
    codes: list[int] = []
    values: dict[str, list[Array]] = {}
    for part, graphs in parts:
        for graph in graphs:
            nodes.append(int(graph["num_nodes"]) if "num_nodes" in graph else len(graph["x"]))
            codes.append(PARTS[part])
            for key, value in graph.items():
                if key != "num_nodes":
                    values.setdefault(key, []).append(_rows(key, value))
    uneven = [key for key, rows in values.items() if len(rows) != len(nodes)]
    if uneven:
        raise GraphError(f"some graphs have no {uneven[0]} while others do")
    counts = {key: np.array([len(row) for row in rows], dtype=np.int64) for key, rows in values.items()}
    fields = {key: np.concatenate(values.pop(key)) for key in list(values)}
    return Collated(
        node_ptr=_borders(np.array(nodes, dtype=np.int64)),
        edges=fields.pop("edge_index"),
        edge_ptr=_borders(counts.pop("edge_index")),
        part=np.array(codes, dtype=np.uint8),
        fields=fields,
        ptrs={key: _borders(counted) for key, counted in counts.items()},
    )


def union_graph(graphs: Collated, task: Task, *, directed: bool = False, **fields: Any) -> Graph:
    """The disjoint union, with `edge_attr` if there is one; other fields as in `Graph`. All of it is checked.

    Self-loops and repeated edges are dropped, and edges go both ways unless `directed`.
    """
    _check_ends(graphs)
    count = graphs.part.size
    n = int(graphs.node_ptr[-1])
    edge_attr = graphs.fields.get("edge_attr")
    degrees: list[IntArray] = [np.zeros(1, dtype=np.int64)]
    indices: list[IntArray] = []
    rows: list[Array] = []
    for first, last in _pieces(graphs.edge_ptr):
        nodes, edges = graphs.node_ptr[first : last + 1], graphs.edge_ptr[first : last + 1]
        start = np.repeat(nodes[:-1] - nodes[0], np.diff(edges))
        src, dst = graphs.edges[edges[0] : edges[-1]].T + start
        indptr, neighbours, origin, _ = csr_from_edges(
            src, dst, int(nodes[-1] - nodes[0]), directed=directed, keep_self_loops=False, keep_duplicates=False
        )
        degrees.append(np.diff(indptr))
        indices.append((neighbours + nodes[0]).astype(id_dtype(n)))
        if edge_attr is not None:
            rows.append(edge_attr[edges[0] : edges[-1]][origin])
    assert sum(map(len, degrees)) == n + 1
    if task.item == "link":
        splits = np.repeat(graphs.part, np.diff(graphs.ptrs["edge_label"]))
    else:
        splits = graphs.part if task.item == "graph" else np.repeat(graphs.part, graphs.sizes)
    return Graph(
        np.cumsum(np.concatenate(degrees)),
        np.concatenate(indices) if count else np.zeros(0, dtype=np.int32),
        edge_attr=np.concatenate(rows) if rows else None,
        graph_ptr=graphs.node_ptr,
        splits=splits,
        task=task,
        directed=directed,
        **fields,
    ).check()


def _pieces(edge_ptr: IntArray) -> list[tuple[int, int]]:
    """Ranges of graphs with about EDGES_AT_A_TIME edges, and at least one graph."""
    pieces, first, graphs = [], 0, edge_ptr.size - 1
    while first < graphs:
        last = int(np.searchsorted(edge_ptr, edge_ptr[first] + EDGES_AT_A_TIME, side="right")) - 1
        last = min(max(last, first + 1), graphs)
        pieces.append((first, last))
        first = last
    return pieces


def _check_ends(graphs: Collated) -> None:
    """Every end of an edge is a node of its own graph: kernels rely on it."""
    if graphs.edges.ndim != 2 or graphs.edges.shape[1] != 2:
        raise GraphError(f"edges have shape {graphs.edges.shape[::-1]}; it must be (2, E)")
    last = np.repeat(graphs.sizes, np.diff(graphs.edge_ptr))[:, None]
    if np.any(graphs.edges < 0) or np.any(graphs.edges >= last):
        raise GraphError("some edges name nodes that their graph does not have")


def _rows(key: str, value: Array) -> Array:
    """An attribute along its first axis, in 32 bits; what is called an index has its rows along the last."""
    array = np.atleast_1d(value)
    if "index" in key:
        array = array.T
    dtype = {"i": np.int32, "f": np.float32}.get(array.dtype.kind, array.dtype)
    if dtype == np.int32 and array.size and not -INT32_MAX <= array.min() <= array.max() <= INT32_MAX:
        raise GraphError(f"{key} holds {array.min()}..{array.max()}, more than 32 bits take")
    return np.ascontiguousarray(array, dtype=dtype)


def _borders(counts: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])
