"""What the constructor of a graph makes sure of: types, shapes, and everything that indexing depends on."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gmn_pipeline.errors import GraphError
from gmn_pipeline.types import Array, IntArray

if TYPE_CHECKING:
    from gmn_pipeline.graph import Graph

INT32_MAX = int(np.iinfo(np.int32).max)
_ROW: Mapping[str, str] = {"x": "node", "edge_attr": "CSR slot"}


def id_dtype(count: int) -> np.dtype[Any]:
    """The type of ids below `count`: int32 until that does not suffice, then int64."""
    return np.dtype(np.int32 if count <= INT32_MAX else np.int64)


def settle(graph: "Graph") -> None:
    """Bring every field to its type and shape, in place. Raises GraphError."""
    for name in ("indptr", "graph_ptr", "node_id_ptr", "graph_id_ptr"):
        value = getattr(graph, name)
        if value is not None:
            _put(graph, name, as_integers(name, value, np.dtype(np.int64)))
    check_pointer("indptr", graph.indptr, np.asarray(graph.indices).size)
    _put(graph, "indices", as_integers("indices", graph.indices, id_dtype(graph.num_nodes)))
    _check_ids("indices", graph.indices, graph.num_nodes)
    if graph.graph_ptr is not None:
        check_pointer("graph_ptr", graph.graph_ptr, graph.num_nodes)
    if graph.pairs is not None:
        _put(graph, "pairs", as_integers("pairs", graph.pairs, id_dtype(graph.num_nodes)))
        if graph.pairs.ndim != 2 or graph.pairs.shape[1] != 2:
            raise GraphError(f"pairs has shape {graph.pairs.shape}; it must be (items, 2)")
        _check_ids("pairs", graph.pairs, graph.num_nodes)
    _settle_features(graph, "x", "x_categories", "x_names", graph.num_nodes)
    _settle_features(graph, "edge_attr", "edge_categories", "edge_names", graph.num_slots)
    _settle_labels(graph)
    _settle_splits(graph)
    _settle_texts(graph, "node_id", graph.num_nodes)
    _settle_texts(graph, "graph_id", graph.num_graphs)
    for name, value in graph.arrays().items():
        if value.flags.writeable:
            value = value.view()
            value.flags.writeable = False
            _put(graph, name, value)


def _put(graph: "Graph", name: str, value: Any) -> None:
    object.__setattr__(graph, name, value)


def _settle_features(graph: "Graph", name: str, categories: str, names: str, rows: int) -> None:
    value = getattr(graph, name)
    if value is None:
        _put(graph, categories, None)
        _put(graph, names, None)
        return
    value = np.asarray(value)
    if value.ndim == 1:
        value = value[:, None]
    if value.ndim != 2 or value.shape[0] != rows:
        raise GraphError(f"{name} has shape {value.shape}; it must have {rows:,} rows, one per {_ROW[name]}")
    if value.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which the checks tell
            value = value.astype(np.float32, copy=False)
        _put(graph, categories, None)
    elif value.dtype.kind in "iub":
        value = as_integers(name, value, np.dtype(np.int32))
        if getattr(graph, categories) is None:
            counts = value.max(axis=0, initial=-1).astype(np.int64) + 1
            _put(graph, categories, tuple(int(c) for c in counts))
    else:
        raise GraphError(f"{name} is of type {value.dtype}; features are floats, or integers for categories")
    _put(graph, name, value)
    if getattr(graph, names) is not None:
        _put(graph, names, tuple(getattr(graph, names)))


def _settle_labels(graph: "Graph") -> None:
    if graph.y is None:
        return
    task = graph.task
    if task is None:
        raise GraphError("labels are given without a task; pass task=Task.of(item, kind, classes)")
    value = np.asarray(graph.y)
    if task.kind in ("multiclass", "binary"):
        if value.ndim == 2 and value.shape[1] == 1:
            value = value[:, 0]
        if value.dtype.kind == "f":
            if not np.all(np.isnan(value) | (value == np.floor(value))):
                raise GraphError(f"labels of a {task.kind} task must be whole numbers; found fractions")
            value = np.where(np.isnan(value), -1, value)
        value = value.astype(np.int64, copy=False)
        wanted: tuple[int, ...] = (graph.num_items,)
    else:
        with np.errstate(over="ignore"):
            value = value.astype(np.float32, copy=False)
        if value.ndim == 1:
            value = value[:, None]
        wanted = (graph.num_items, task.classes)
    if value.shape != wanted:
        raise GraphError(f"labels have shape {value.shape}; a {task.kind} task on these items needs {wanted}")
    _put(graph, "y", value)


def _settle_splits(graph: "Graph") -> None:
    if graph.splits is None:
        return
    value = np.atleast_2d(np.asarray(graph.splits))
    if value.ndim != 2 or value.shape[1] != graph.num_items:
        raise GraphError(f"splits has shape {value.shape}; it must be (splits, {graph.num_items:,} items)")
    _put(graph, "splits", as_integers("splits", value, np.dtype(np.uint8)))


def _settle_texts(graph: "Graph", name: str, count: int) -> None:
    ptr, content = getattr(graph, f"{name}_ptr"), getattr(graph, f"{name}_bytes")
    if ptr is None and content is None:
        return
    if ptr is None or content is None or ptr.size != count + 1:
        raise GraphError(f"{name}_ptr and {name}_bytes are required together, for {count:,} ids")
    content = as_integers(f"{name}_bytes", content, np.dtype(np.uint8))
    check_pointer(f"{name}_ptr", ptr, content.size)
    _put(graph, f"{name}_bytes", content if content.size else None)
    if not content.size:
        _put(graph, f"{name}_ptr", None)


def as_integers(name: str, value: Array, dtype: np.dtype[Any]) -> IntArray:
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


def check_pointer(name: str, pointer: IntArray, total: int) -> None:
    """Raise GraphError unless `pointer` climbs from 0 to `total`."""
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


def edge_columns(edges: Array | Sequence[Any]) -> tuple[IntArray, IntArray]:
    """Sources and targets of (E, 2) or (2, E) edges, (E,) int64 each."""
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
