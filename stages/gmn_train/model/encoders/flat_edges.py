"""A chunk's token edges as one edge index over all entries of its node lists, as PyG wants it."""

import torch
from torch import Tensor

from gmn_pipeline.errors import ModelError
from gmn_train.data.token_chunks import TokenChunk


def flat_edge_index(chunk: TokenChunk) -> tuple[Tensor, Tensor]:
    """(source, target), (E',) int64 each: entries of chunk.nodes. An undirected edge appears both ways, a loop once."""
    edges, offset = _edges_and_offsets(chunk)
    source, target = edges[:, 0] + offset, edges[:, 1] + offset  # (E,)
    if chunk.directed:
        return source, target
    both = source != target
    return torch.cat([source, target[both]]), torch.cat([target, source[both]])


def flat_edge_rows(chunk: TokenChunk) -> Tensor:
    """(E',) rows of edge features, one for each edge of `flat_edge_index`."""
    edges, _ = _edges_and_offsets(chunk)
    if chunk.edge_rows is None:
        raise ModelError("the tokens have no edge features; the graph of this store has none, or they were left out")
    if chunk.directed:
        return chunk.edge_rows[:, 0]
    return torch.cat([chunk.edge_rows[:, 0], chunk.edge_rows[edges[:, 0] != edges[:, 1], 1]])


def _edges_and_offsets(chunk: TokenChunk) -> tuple[Tensor, Tensor]:
    if chunk.edges is None or chunk.edge_ptr is None:
        raise ModelError("this token encoder needs the tokens' edges; gather them with parts=('edges',)")
    return chunk.edges.long(), torch.repeat_interleave(chunk.node_ptr[:-1], chunk.edge_ptr.diff())
