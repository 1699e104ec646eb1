"""The user's own graph as a PyG `Data`, a list of them, or a dict of tensors, saved by torch.

Read with weights_only, so a file cannot run code.
"""

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.file_sizes import check_torch
from gmn_prep.datasets.public.quiet_loader import quiet_loader
from gmn_prep.datasets.user.user_graph import KEYS, SCALARS


def read_torch(path: Path, _options: DatasetOptions) -> tuple[dict[str, Any], list[str]]:
    """The arrays of the .npz format that the file holds; other attributes are left aside."""
    graphs = _load(path)
    if len(graphs) == 1:
        return graphs[0], []
    arrays: dict[str, Any] = {}
    sizes = [_count_nodes(graph) for graph in graphs]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    for key in dict.fromkeys(key for graph in graphs for key in graph):
        values = [graph.get(key) for graph in graphs]
        absent = [i for i, value in enumerate(values) if value is None]
        if absent:
            raise DatasetError(f"{path.name}: graph {absent[0]} has no {key} while others do; all or none must")
        if key in SCALARS:
            arrays[key] = values[0]
        elif key == "edge_index":
            shifted = [value + start for value, start in zip(values, starts, strict=False)]
            arrays[key] = np.concatenate(shifted, axis=1)
        else:
            arrays[key] = np.concatenate([np.atleast_1d(np.asarray(value)) for value in values])
    return arrays | {"num_nodes": int(starts[-1]), "graph_ptr": starts}, []


def _load(path: Path) -> list[dict[str, Any]]:
    with quiet_loader(downloading=False):
        import torch
        from torch_geometric.data import Data
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage

    check_torch(path)
    known: list[Any] = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    try:
        with torch.serialization.safe_globals(known):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise DatasetError(
            f"{path.name} holds more than tensors and PyG Data, which could run code when read; save it with "
            "torch.save(data.to_dict(), path)"
        ) from error
    except Exception as error:  # what is no such file at all fails in as many ways as bytes can be wrong
        raise DatasetError(f"{path.name} is not a file saved by torch ({' '.join(str(error).split())})") from error
    items = list(content) if isinstance(content, (list, tuple)) else [content]
    if not items or not all(isinstance(item, (Data, dict)) for item in items):
        kinds = ", ".join(sorted({type(item).__name__ for item in items})) or "nothing"
        raise DatasetError(f"{path.name} holds {kinds}; it must hold a PyG Data, a list of them, or dicts of tensors")
    return [_arrays(item if isinstance(item, dict) else item.to_dict()) for item in items]


def _arrays(values: dict[str, Any]) -> dict[str, Any]:
    import torch

    out = {}
    for key in KEYS:
        value = values.get(key)
        if isinstance(value, torch.Tensor):
            array = value.detach().numpy()
            out[key] = array.item() if key in SCALARS else array
        elif value is not None:
            out[key] = value
    return out


def _count_nodes(graph: dict[str, Any]) -> int:
    if "num_nodes" in graph:
        return int(graph["num_nodes"])
    return len(graph["x"]) if "x" in graph else int(graph["edge_index"].max(initial=-1)) + 1
