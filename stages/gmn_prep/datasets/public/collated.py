"""From PyG's collated storage of many graphs to one Graph, without a Python step per graph.

An `InMemoryDataset` keeps each attribute of all its graphs in one tensor, with node ids that start anew in each
graph, and the borders between graphs in `slices`. A disjoint union sorts graph by graph, so its CSR is made a
piece of consecutive graphs at a time: only one piece is ever in memory more than once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph, id_dtype
from gmn_pipeline.graph.edges import csr_from_edges
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


def collate(parts: Iterable[tuple[str, Any]]) -> Collated:
    """The graphs of (part name, PyG InMemoryDataset) pairs.

    Each dataset is let go before the next is asked for. Attributes lie along their first axis, in 32 bits.
    """
    nodes: list[IntArray] = []
    codes: list[Array] = []
    values: dict[str, list[Array]] = {}
    counts: dict[str, list[IntArray]] = {}
    for name, dataset in parts:
        nodes.append(_node_counts(dataset))
        codes.append(np.full(len(dataset), PARTS[name], dtype=np.uint8))
        for key in dataset._data.keys():  # noqa: SIM118
            if key != "num_nodes":
                values.setdefault(key, []).append(_rows(key, dataset._data[key]))
                counts.setdefault(key, []).append(_row_counts(key, dataset))
    fields = {key: np.concatenate(values.pop(key)) for key in list(values)}
    return Collated(
        node_ptr=_borders(nodes),
        edges=fields.pop("edge_index"),
        edge_ptr=_borders(counts.pop("edge_index")),
        part=np.concatenate(codes),
        fields=fields,
        ptrs={key: _borders(counted) for key, counted in counts.items()},
    )


def union_graph(graphs: Collated, task: Task, *, directed: bool = False, **fields: Any) -> Graph:
    """The disjoint union, with `edge_attr` if there is one; other fields as in `Graph`. All of it is checked.

    Self-loops and repeated edges are dropped, and edges go both ways unless `directed`.
    """
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
    if task.level == "link":
        splits = np.repeat(graphs.part, np.diff(graphs.ptrs["edge_label"]))
    else:
        splits = graphs.part if task.level == "graph" else np.repeat(graphs.part, graphs.sizes)
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


def _node_counts(dataset: Any) -> IntArray:
    """Nodes of each graph: as stored where it is, else the rows of x."""
    if dataset.slices is None:
        return np.array([dataset._data.num_nodes], dtype=np.int64)
    if "x" in dataset.slices:
        return np.diff(dataset.slices["x"].numpy())
    return np.asarray(dataset._data._store._num_nodes, dtype=np.int64)


def _row_counts(key: str, dataset: Any) -> IntArray:
    """Rows of each graph in an attribute. PyG keeps no borders of a single graph."""
    if dataset.slices is None:
        return np.array([len(_rows(key, dataset._data[key]))], dtype=np.int64)
    return np.diff(dataset.slices[key].numpy())


def _rows(key: str, value: Any) -> Array:
    """An attribute along its first axis, in 32 bits; PyG joins what is called an index along its last."""
    array = np.atleast_1d(np.asarray(value))
    if "index" in key:
        array = array.T
    dtype = {"i": np.int32, "f": np.float32}.get(array.dtype.kind, array.dtype)
    return np.ascontiguousarray(array, dtype=dtype)


def _borders(counts: Sequence[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate(counts), dtype=np.int64)])
