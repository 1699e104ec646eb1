"""Inputs of whole graphs: one large graph in full, or a batch of many, packed without padding."""

from collections.abc import Sequence

import numpy as np
import torch

from gmn_pipeline.errors import ModelError
from gmn_pipeline.store.reading.view import TokenBatch
from gmn_pipeline.types import Array, IntArray
from gmn_train.data.inputs.record import ModelInputs
from gmn_train.data.inputs.rows import concatenate_ranges, neighbourhood, pair_rows
from gmn_train.data.inputs.source import InputSource, gather_tokens, node_tensors, scan_order
from gmn_train.data.read_ahead import Clock
from gmn_train.data.token_chunks import TokenChunk, cut_chunks


def whole_inputs(
    source: InputSource,
    graphs: Array | Sequence[int] | None = None,
    *,
    epoch: int | None = None,
    chunk_nodes: int | None = None,
    keep_tokens: bool = True,
    pairs: Array | None = None,
    clock: Clock | None = None,
) -> ModelInputs:
    """All nodes of some graphs, packed. Default: all graphs. `full` mode for one graph, batches for many.

    epoch: of training, from 0; None for evaluation. chunk_nodes: nodes whose tokens are encoded at a time; all of them
    unless given. keep_tokens: False reads a chunk from the store whenever it is used, so that memory does not grow
    with the store. pairs: (K, 2) node ids. clock: counts the seconds that reading a chunk makes a pass wait.
    """
    g, borders = source.graph, source.graph_ptr
    everything = graphs is None
    chosen = np.arange(len(borders) - 1) if graphs is None else np.asarray(graphs, np.int64)
    if chosen.size and (chosen.min() < 0 or chosen.max() >= len(borders) - 1):
        raise ModelError(f"graphs {chosen.min()}..{chosen.max()} asked for; the store has 0..{len(borders) - 2}")
    sizes = borders[chosen + 1] - borders[chosen]
    ids = concatenate_ranges(borders[chosen], sizes)  # (U,)
    starts = np.append(0, np.cumsum(sizes))
    shifts = borders[chosen] - starts[:-1]  # id - row, by graph
    first_slots = g.indptr[borders[chosen]]
    slot_counts = g.indptr[borders[chosen + 1]] - first_slots
    slot_shifts = first_slots - np.append(0, np.cumsum(slot_counts))[:-1]
    if everything:
        near, edge_attr = source.all_edges, source.all_edge_attr
    else:
        slots = concatenate_ranges(first_slots, slot_counts)  # (E,)
        shift = np.repeat(shifts, slot_counts)
        near = neighbourhood(g.slot_sources[slots] - shift, g.indices[slots] - shift, len(ids), g.directed)
        edge_attr = source.edge_features(slots)

    graph_of = np.repeat(np.arange(len(chosen)), sizes)  # (U,) place of each row's graph in the batch
    step = len(ids) if chunk_nodes is None else chunk_nodes
    if step < 1 and len(ids):
        raise ModelError(f"chunk_nodes is {chunk_nodes}; it must be at least 1")

    def load(rows: slice) -> TokenChunk:
        batch = gather_tokens(source, ids[rows], epoch)
        nodes, edge_rows = batch.nodes, batch.edge_slots if source.reads_edges else None
        if not everything:
            nodes = nodes - per_token_node(batch, batch.node_ptr, shifts[graph_of[rows]])
            if edge_rows is not None and batch.edge_ptr is not None:
                edge_rows = edge_rows - per_token_node(batch, batch.edge_ptr, slot_shifts[graph_of[rows]])[:, None]
        return TokenChunk.of(batch, nodes, edge_rows, rows=len(ids), directed=g.directed, first=rows.start)

    tokens: Sequence[TokenChunk] = ()
    if source.reads_tokens and len(ids):
        tokens = cut_chunks(len(ids), step, load, keep=keep_tokens, clock=clock)
    return ModelInputs(
        settings=source.view.settings,
        node_ids=torch.from_numpy(ids),
        targets=len(ids),
        **node_tensors(source, ids, chosen, graph_of, epoch, everything),
        near=near,
        edge_attr=edge_attr,
        order=scan_order(source, ids, graph_of, starts, epoch),
        tokens=tokens,
        pairs=pair_rows(ids, pairs),
    )


def per_token_node(batch: TokenBatch, pointer: IntArray, values: IntArray) -> IntArray:
    """values (B,), one per node of the batch, repeated for every entry of its tokens."""
    repeated: IntArray = np.repeat(values, np.diff(pointer[:: batch.length]))
    return repeated
