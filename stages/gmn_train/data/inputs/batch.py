"""Inputs of some nodes of one large graph."""

from collections.abc import Sequence

import numpy as np
import torch

from gmn_pipeline.errors import ModelError
from gmn_pipeline.types import Array
from gmn_train.data.inputs.record import ModelInputs
from gmn_train.data.inputs.rows import edges_among, pair_rows
from gmn_train.data.inputs.source import InputSource, gather_tokens, node_tensors, scan_order
from gmn_train.data.token_chunks import TokenChunk


def batch_inputs(
    source: InputSource,
    node_ids: Array | Sequence[int],
    *,
    epoch: int | None = None,
    scan_context: bool | None = None,
    pairs: Array | None = None,
) -> ModelInputs:
    """Some nodes of one large graph with the nodes of their tokens: an approximation, in memory that follows the batch.

    node_ids: (B,) distinct. scan_context: whether node layers run on the tokens' other nodes too (those have no tokens
    of their own). Default: only if token blocks stand between layers, which need it.
    """
    g, config = source.graph, source.config
    ids = np.asarray(node_ids, np.int64)
    if g.num_graphs != 1:
        raise ModelError("batch_inputs cuts one large graph; of many graphs, choose some with whole_inputs(graphs=...)")
    if len(np.unique(ids)) != len(ids):
        raise ModelError("a batch names a node twice; each node may stand in it once")
    context = bool(config.blocks_after) if scan_context is None else scan_context
    batch = gather_tokens(source, ids, epoch) if source.reads_tokens else None
    entries = ids[:0] if batch is None else batch.nodes.astype(np.int64)
    distinct, place = np.unique(np.concatenate([ids, entries]), return_inverse=True)
    row_of = np.full(len(distinct), -1)  # of each distinct node
    row_of[place[: len(ids)]] = np.arange(len(ids))
    others = np.flatnonzero(row_of < 0)
    row_of[others] = len(ids) + np.arange(len(others))
    rows = np.concatenate([ids, distinct[others]])  # (U,) node ids
    scanned = rows if context else ids  # (S,)

    slots, near = edges_among(g, scanned)
    edge_attr, edge_rows = None, None
    if source.reads_edges:
        token_slots = np.zeros(0, np.int64) if batch is None or batch.edge_slots is None else batch.edge_slots
        extra, edge_place = np.unique(token_slots, return_inverse=True)
        edge_attr = source.edge_features(np.concatenate([slots, extra]).astype(np.int64))
        edge_rows = len(slots) + edge_place.reshape(token_slots.shape)
    tokens: Sequence[TokenChunk] = ()
    if batch is not None and len(ids):
        with_slots = None if batch.edge_slots is None else edge_rows
        chunk = TokenChunk.of(batch, row_of[place[len(ids) :]], with_slots, rows=len(rows), directed=g.directed)
        tokens = (chunk,)
    one = np.zeros(len(rows), np.int64)
    return ModelInputs(
        settings=source.view.settings,
        node_ids=torch.from_numpy(rows),
        targets=len(ids),
        **node_tensors(source, rows, np.zeros(1, np.int64), one, epoch),
        near=near,
        edge_attr=edge_attr,
        order=scan_order(source, scanned, one[: len(scanned)], np.array([0, len(scanned)]), epoch),
        tokens=tokens,
        pairs=pair_rows(ids, pairs),
    )
