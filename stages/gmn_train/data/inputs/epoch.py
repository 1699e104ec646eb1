"""The parts of inputs that depend on the epoch: tokens with their repeats, encodings with their signs, node order."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.store.view import TokenBatch
from gmn_pipeline.tables import load_code
from gmn_pipeline.types import IntArray
from gmn_train.data.draws import draw_repeats, draw_signs, draw_ties
from gmn_train.data.inputs.rows import feature_tensor
from gmn_train.data.inputs.source import InputSource
from gmn_train.data.node_order import NodeOrder
from gmn_train.model.tables import READABLE


def gather_tokens(source: InputSource, ids: IntArray, epoch: int | None) -> TokenBatch:
    """The nodes' tokens, their repeats drawn for the epoch."""
    view, stored = source.view, source.view.store.settings.s
    repeats = None
    if epoch is not None and source.config.repeats == "draw" and stored > 1:
        repeats = draw_repeats(source.seed, epoch, ids, view.settings.m, view.settings.s, stored)
        repeats = None if len(ids) == 0 else repeats
    return view.gather(ids, parts=source.parts, repeats=repeats)


def node_tensors(
    source: InputSource,
    ids: IntArray,
    graphs: IntArray,
    graph_of: IntArray,
    epoch: int | None,
    everything: bool = False,
) -> dict[str, Any]:
    """x, encodings, log_degree and extra inputs of the nodes `ids`; graph_of (U,) is each one's place in `graphs`.

    everything: the ids are all there are, in their order.
    """
    g = source.graph
    x = None if g.x is None else (source.all_x if everything else feature_tensor(g.x[ids]))
    columns = []
    for kept, values in source.encodings:
        part = values[ids]  # (U, k)
        if kept.free_signs:
            flip = epoch if source.config.lap_signs == "flip" else None
            signs = draw_signs(source.seed, flip, graphs, values.shape[1])  # (graphs, k)
            # Unit vectors of n nodes have entries near n^-1/2: scaled to order 1, so that graph size does not decide.
            scale = np.sqrt(np.diff(source.graph_ptr)[graphs]).astype(np.float32)
            part = part * (signs * scale[:, None])[graph_of]
        columns.append(part)
    degree = np.log1p(g.degrees[ids]).astype(np.float32)[:, None] if source.config.log_degree else None
    return {
        "x": x,
        "encodings": torch.from_numpy(np.concatenate(columns, 1)) if columns else None,
        "log_degree": None if degree is None else torch.from_numpy(degree),
        "extra": extra_inputs(source, ids, epoch),
    }


def extra_inputs(source: InputSource, ids: IntArray, epoch: int | None) -> dict[str, Tensor]:
    """What only some models read, by name: see `model.tables.READABLE`."""
    wanted = [READABLE[name] for name in sorted(source.config.reads)]
    return {entry.name: load_code(entry.code)(source, ids, epoch) for entry in wanted if entry.code is not None}


def scan_order(
    source: InputSource, ids: IntArray, graph_of: IntArray, starts: IntArray, epoch: int | None
) -> NodeOrder:
    """Rows by graph, then rank, then a random draw per node: never by id, which would leak positions."""
    borders = torch.from_numpy(np.asarray(starts, np.int64))
    if source.ranks is None:
        return NodeOrder(torch.arange(len(ids)), borders)
    ties = draw_ties(source.seed, epoch if source.config.order_ties == "epoch" else None, ids)
    rows = np.lexsort((ties, source.ranks[ids], graph_of))
    return NodeOrder(torch.from_numpy(rows), borders)
