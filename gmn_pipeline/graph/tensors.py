"""Tensors as arrays, and the attributes of a PyG `Data` under the names that a graph has for them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gmn_pipeline.errors import GraphError
from gmn_pipeline.types import Array

MOST_ENTRIES = 1 << 30
"""Of a sparse matrix that is made dense: 4 GB."""


def to_array(value: Any, name: str = "a tensor") -> Array:
    """A tensor, or what numpy takes, as an array. GraphError for a tensor without plain values of its own."""
    if not hasattr(value, "untyped_storage"):
        return np.asarray(value)
    import torch

    if value.device.type == "meta" or value.is_quantized or value.is_complex():
        kind = "quantized" if value.is_quantized else "complex" if value.is_complex() else "on the meta device"
        raise GraphError(f"{name} is {kind}; it must hold plain numbers")
    value = value.detach().cpu()
    if value.layout != torch.strided:
        if value.numel() > MOST_ENTRIES:
            raise GraphError(f"{name} is sparse, and {tuple(value.shape)} is too large to be made dense")
        value = value.to_dense()
    elif value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise GraphError(f"{name} has shape {tuple(value.shape)} on {value.untyped_storage().nbytes():,} bytes")
    if value.dtype in (torch.bfloat16, torch.float16):
        value = value.float()
    try:
        array: Array = value.as_subclass(torch.Tensor).numpy()
    except (TypeError, RuntimeError) as error:
        raise GraphError(f"{name} is of type {value.dtype}, which numpy does not have") from error
    return array


def data_arrays(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of one PyG `Data` with tensors as arrays.

    `adj_t` becomes `edge_index`; `edge_weight`, and weights in `adj_t`, become a column of `edge_attr`, named in
    `edge_names`. Raises GraphError.
    """
    out = {
        key: to_array(value, key) if hasattr(value, "untyped_storage") else value
        for key, value in values.items()
        if value is not None and key not in ("adj_t", "edge_weight")
    }
    weight = values.get("edge_weight")
    weight = None if weight is None else to_array(weight, "edge_weight")
    if values.get("adj_t") is not None and "edge_index" not in out:
        out["edge_index"], adjacency_weight = _read_adjacency(values["adj_t"])
        weight = adjacency_weight if weight is None else weight
    if weight is not None:
        edges = np.asarray(out["edge_index"]).shape[-1]
        if weight.size != edges:
            raise GraphError(f"edge_weight has {weight.size:,} values for {edges:,} edges; it needs one per edge")
        column = weight.reshape(-1, 1).astype(np.float32)
        if "edge_attr" in out:
            attributes = np.asarray(out["edge_attr"], dtype=np.float32)
            out["edge_attr"] = np.concatenate([attributes.reshape(len(attributes), -1), column], axis=1)
        else:
            out["edge_attr"], out["edge_names"] = column, ("edge_weight",)
    return out


def _read_adjacency(adj_t: Any) -> tuple[Array, Array | None]:
    """(2, E) edges of a transposed adjacency, row by target, and their weights unless all are 1."""
    if not hasattr(adj_t, "layout"):
        raise GraphError("adj_t is a SparseTensor of torch_sparse; give edge_index instead")
    matrix = adj_t.detach().cpu().to_sparse_coo().coalesce()
    target, source = matrix.indices().numpy()
    values = to_array(matrix.values(), "adj_t")
    return np.stack([source, target]), None if np.all(values == 1) else values
