"""Converts between our `Graph` and PyG's `Data`. Only this file and `tensors` import torch here, when called."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from gmn_pipeline.errors import GraphError
from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.graph.tensors import data_arrays
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array

_MASKS = {TRAIN: "train_mask", VAL: "val_mask", TEST: "test_mask"}


def graph_from_pyg(data: Any, task: Task | None = None, **options: Any) -> Graph:
    """A `Graph` from one PyG `Data`, or a disjoint union from a sequence of them.

    Reads x, edge_index or adj_t, edge_attr, edge_weight, y and the train/val/test masks (columns of a two-dimensional
    mask are splits).
    Without a `task`, integer labels make a node (many graphs: graph) classification, and floats a regression.
    options: `directed`, `keep_self_loops`, `keep_duplicates` as in `Graph.from_edges`.
    """
    from torch_geometric.data import Data

    if isinstance(data, Data):
        given, graph_ptr = [data], None
    elif isinstance(data, Iterable) and not hasattr(data, "node_types"):
        given = list(data)
        sizes = [int(item.num_nodes or 0) for item in given]
        graph_ptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    else:
        hint = "; data.to_homogeneous() makes one graph of it" if hasattr(data, "node_types") else ""
        raise GraphError(f"expected a PyG Data or a sequence of them, found {type(data).__name__}{hint}")

    items = [data_arrays(item.to_dict()) for item in given]
    offsets = [0] if graph_ptr is None else graph_ptr[:-1].tolist()
    n = int(given[0].num_nodes or 0) if graph_ptr is None else int(graph_ptr[-1])
    edges = [item["edge_index"] + offset for item, offset in zip(items, offsets, strict=True)]
    y = _stack(items, "y")
    if task is None and y is not None:
        task = _guess_task(y, n, many=graph_ptr is not None)
    edge_attr = _stack(items, "edge_attr")
    return Graph.from_edges(
        np.concatenate(edges, axis=1).T if edges else np.zeros((0, 2), dtype=np.int64),
        n,
        edge_attr=edge_attr,
        edge_names=items[0].get("edge_names") if items else None,
        x=_stack(items, "x"),
        y=y if task is not None else None,
        splits=_read_masks(items),
        graph_ptr=graph_ptr,
        task=task,
        **options,
    )


def graph_to_pyg(graph: Graph) -> Any:
    """One PyG `Data` holding copies of the graph's arrays."""
    import torch
    from torch_geometric.data import Data

    def tensor(array: Array) -> Any:
        return torch.from_numpy(np.array(array))

    edge_index = tensor(np.stack([graph.slot_sources, graph.indices]).astype(np.int64))
    data = Data(edge_index=edge_index, num_nodes=graph.num_nodes)
    for name in ("x", "edge_attr", "y"):
        value = getattr(graph, name)
        if value is not None:
            setattr(data, name, tensor(value.astype(np.int64) if value.dtype.kind == "i" else value))
    if graph.splits is not None and graph.task is not None and graph.task.item == "node":
        for code, name in _MASKS.items():
            mask = tensor((graph.splits == code).T)  # (items, splits), as PyG has it
            setattr(data, name, mask[:, 0] if len(graph.splits) == 1 else mask)
    if graph.graph_ptr is not None:
        data.graph_ptr = tensor(graph.graph_ptr)
        data.batch = tensor(np.repeat(np.arange(graph.num_graphs), np.diff(graph.graph_ptr)))
    return data


def _stack(items: list[dict[str, Any]], name: str) -> Array | None:
    """One attribute of all items, along the first axis; None where none has it."""
    values = [item.get(name) for item in items]
    present = [v is not None for v in values]
    if not any(present):
        return None
    if not all(present):
        raise GraphError(f"graph {present.index(False)} has no {name} while others do; all or none must have it")
    return np.concatenate([np.atleast_1d(np.asarray(v)) for v in values])


def _read_masks(items: list[dict[str, Any]]) -> Array | None:
    masks = {code: _stack(items, name) for code, name in _MASKS.items()}
    train = masks[TRAIN]
    if train is None:
        return None
    shape = np.atleast_2d(train.T).shape  # (splits, items)
    splits = np.zeros(shape, dtype=np.uint8)
    for code, mask in masks.items():
        if mask is not None:
            splits[np.atleast_2d(mask.T)] = code
    return splits


def _guess_task(y: Array, n: int, *, many: bool) -> Task:
    item = "graph" if many and len(y) != n else "node"
    if y.dtype.kind == "f":
        return Task.of(item, "regression", 1 if y.ndim == 1 else y.shape[1])  # type: ignore[arg-type]
    classes = int(y.max(initial=1)) + 1
    return Task.of(item, "multiclass", max(classes, 2))  # type: ignore[arg-type]
