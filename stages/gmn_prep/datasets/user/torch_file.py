"""The user's own graph as PyG saves it: a `Data`, a list of them, an `InMemoryDataset`'s file, or a dict of tensors.

Read with weights_only, so a file cannot run code.
"""

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, GraphError, one_line
from gmn_pipeline.graph.tensors import data_arrays
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.file_sizes import check_torch
from gmn_prep.datasets.public.raw.plain_tensors import allowing
from gmn_prep.datasets.public.raw.quiet_loader import quiet_loader
from gmn_prep.datasets.user.user_graph import KEYS, SCALARS

READ = ("adj_t", "edge_weight")
"""Attributes that are read beside those of the .npz format."""
USELESS = ("batch", "ptr")
"""Attributes that say what is known anyway."""
HETERO = "holds a HeteroData; save data.to_homogeneous().to_dict(), a graph of one type of nodes and edges"
MOST_NODES = 1 << 40
"""Of one graph: sums of more wrap around."""


def read_torch(path: Path, _options: DatasetOptions) -> tuple[dict[str, Any], list[str]]:
    """The arrays of the .npz format that the file holds, and notes; other attributes are left aside."""
    with quiet_loader(downloading=False):
        content = _load(path)
    return arrays_of_object(content, path)


def arrays_of_object(content: Any, path: Path) -> tuple[dict[str, Any], list[str]]:
    """The same for what such a file holds, already in memory. path: what to call it in messages."""
    try:
        with quiet_loader(downloading=False):  # torch warns of sparse tensors
            graphs, notes = _graphs(content, path)
        return (graphs[0] if len(graphs) == 1 else _join(graphs)), notes
    except (GraphError, ValueError, TypeError, IndexError, KeyError, RuntimeError) as error:
        raise DatasetError(f"{path.name}: {one_line(error)}") from error


def _load(path: Path) -> Any:
    check_torch(path)
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import AttrType, GlobalStorage

    known = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, AttrType, dict, list]
    try:
        with allowing(known), torch.sparse.check_sparse_tensor_invariants():
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise DatasetError(f"{path.name} {_reason(str(error))}") from error
    except Exception as error:  # what is no such file at all fails in as many ways as bytes can be wrong
        raise DatasetError(f"{path.name} is not a file saved by torch ({one_line(error)})") from error


def _reason(refusal: str) -> str:
    """Why torch does not read a file, by the class it names."""
    if "DynamicInheritanceGetter" in refusal:
        return "holds a Batch; save batch.to_data_list() instead"
    if any(name in refusal for name in ("HeteroData", "BaseStorage", "NodeStorage", "EdgeStorage")):
        return HETERO
    if "SparseTensor" in refusal:
        return "holds a SparseTensor of torch_sparse; save edge_index instead of adj_t"
    return (
        "holds more than tensors and PyG Data, which could run code when read; save it with "
        "torch.save(data.to_dict(), path)"
    )


def _graphs(content: Any, path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The attributes of each graph that the file holds, and notes."""
    if isinstance(content, tuple) and len(content) in (2, 3) and _is_slices(content[1]):
        items = _cut(_attributes(content[0]), content[1])
    else:
        items = [_attributes(item) for item in (content if isinstance(content, (list, tuple)) else [content])]
    if not items or any(item is None for item in items):
        contents = content if isinstance(content, (list, tuple)) else [content]
        kinds = ", ".join(sorted({type(item).__name__ for item in contents})) or "nothing"
        raise DatasetError(f"{path.name} holds {kinds}; it must hold a PyG Data, a list of them, or dicts of tensors")
    aside = sorted({key for item in items for key in item if key not in (*KEYS, *READ, *USELESS) and key[:1] != "_"})
    notes = [f"{path.name}: left aside {', '.join(aside)}"] if aside else []
    graphs = [data_arrays({key: value for key, value in item.items() if key in (*KEYS, *READ)}) for item in items]
    scalars = ((graph, key) for graph in graphs for key in SCALARS if isinstance(graph.get(key), np.ndarray))
    for graph, key in scalars:
        graph[key] = graph[key].item()
    return graphs, notes


def _attributes(item: Any) -> Any:
    """The attributes of a Data or a dict; None for anything else. PyG's names of pairs become ours."""
    item = _plain_attributes(item)
    if item is not None and "edge_label_index" in item and not {"y", "pairs"} & set(item):
        item = {key: value for key, value in item.items() if key not in ("edge_label_index", "edge_label")} | {
            "pairs": item["edge_label_index"].T,
            **({"y": item["edge_label"]} if "edge_label" in item else {}),
        }
    return item


def _plain_attributes(item: Any) -> Any:
    if isinstance(item, dict):
        return item
    if hasattr(item, "node_types"):
        raise GraphError(HETERO)
    return item.to_dict() if hasattr(item, "edge_index") and hasattr(item, "to_dict") else None


def _is_slices(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and "edge_index" in value)


def _cut(data: Any, slices: Any) -> list[Any]:
    """The graphs of PyG's collated storage: each attribute of all graphs is one tensor, cut at `slices`."""
    if data is None or slices is None:
        return [data]
    count = len(slices["edge_index"]) - 1
    sizes = data.get("_num_nodes")
    items = []
    for g in range(count):
        item: dict[str, Any] = {} if sizes is None else {"num_nodes": int(sizes[g])}
        for key, borders in slices.items():
            first, last = int(borders[g]), int(borders[g + 1])
            value = data[key]
            item[key] = value[..., first:last] if "index" in key else value[first:last]
        items.append(item)
    return items


def _join(graphs: list[dict[str, Any]]) -> dict[str, Any]:
    """One disjoint union, with `graph_ptr`."""
    arrays: dict[str, Any] = {}
    sizes = [_count_nodes(graph) for graph in graphs]
    if min(sizes) < 0 or max(sizes) > MOST_NODES:
        raise GraphError(f"a graph has {max(sizes):,} nodes; ids must be numbers from 0")
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    for key in dict.fromkeys(key for graph in graphs for key in graph):
        values = [graph.get(key) for graph in graphs]
        absent = [i for i, value in enumerate(values) if value is None]
        if absent:
            raise GraphError(f"graph {absent[0]} has no {key} while others do; all graphs need it, or none")
        if key in SCALARS or key.endswith("_names"):
            arrays[key] = values[0]
        elif key == "edge_index":
            arrays[key] = np.concatenate(
                [np.asarray(value) + start for value, start in zip(values, starts, strict=False)], axis=1
            )
        else:
            arrays[key] = np.concatenate([np.atleast_1d(np.asarray(value)) for value in values])
    return arrays | {"num_nodes": int(starts[-1]), "graph_ptr": starts}


def _count_nodes(graph: dict[str, Any]) -> int:
    if "num_nodes" in graph:
        return int(graph["num_nodes"])
    return len(graph["x"]) if "x" in graph else int(np.asarray(graph["edge_index"]).max(initial=-1)) + 1
