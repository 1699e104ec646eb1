"""GatedGCN's messages without a product per edge, for the weights of PyG's ResGatedGraphConv.

PyG multiplies each edge's (node state, edge state) by W_key, W_query and W_value: three (E, 2d) x (2d, d) products. A
product of two things side by side is the sum of two products, so node states are multiplied once per node, edge states once
per distinct state, and a kernel adds, gates and sums.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from gmn_train.machine.threads import run_tasks
from gmn_train.model.layers.edge_order import EdgeOrder, row_ranges
from gmn_train.model.layers.edge_states import EdgeStates
from gmn_train.model.layers.full_precision import full
from gmn_train.model.layers.gated_kernels import (
    gated_edge_gradients,
    gated_source_gradients,
    gated_state_gradients,
    gated_sums,
)
from gmn_train.model.scan.numba_scan import pad_columns


def gated_outputs(convolution: nn.Module, x: Tensor, order: EdgeOrder, edges: EdgeStates | None) -> Tensor:
    """What convolution(x, edge_index, edge states) gives: (S, d)."""
    key, query, value = (getattr(convolution, f"lin_{name}") for name in ("key", "query", "value"))
    d = x.shape[1]
    weight = torch.cat([key.weight[:, :d], query.weight[:, :d], value.weight[:, :d], convolution.lin_skip.weight])
    bias = torch.cat([key.bias + query.bias, torch.zeros_like(key.bias), value.bias, convolution.bias])  # type: ignore[arg-type]
    projected = full(linear(x, weight, bias))  # (S, 4d)
    if edges is None:
        states, rows = x.new_zeros(1, 2 * d), torch.zeros(len(order.edges), dtype=torch.int64)
    else:
        of_edges = torch.cat([key.weight[:, d:] + query.weight[:, d:], value.weight[:, d:]])  # (2d, d)
        states, rows = full(linear(edges.values, of_edges)), edges.rows  # (K, 2d)
        rows = torch.arange(len(states)) if rows is None else rows
    keys, queries, values, skip = projected.split(d, 1)
    parts = [pad_columns(p) for p in (keys, queries, values)]
    padded = torch.cat([pad_columns(p) for p in states.split(d, 1)], 1)
    summed: Tensor = GatedSums.apply(torch.cat(parts, 1), padded, rows, order)  # type: ignore[no-untyped-call]
    return summed[:, :d] + skip


class GatedSums(torch.autograd.Function):
    """Autograd node around the kernels."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, states: Tensor, rows: Tensor, order: EdgeOrder) -> Tensor:
        out = nodes.new_empty(len(nodes), nodes.shape[1] // 3)
        arrays = [a.detach().numpy() for a in (nodes, states, rows)]
        run_tasks(lambda task: gated_sums(*arrays, *order[:3], *task, out.numpy()), row_ranges(len(nodes)))
        ctx.save_for_backward(nodes, states, rows)
        ctx.order = order
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        nodes, states, rows = ctx.saved_tensors
        order: EdgeOrder = ctx.order
        width = nodes.shape[1] // 3
        grad_nodes, grads = torch.empty_like(nodes), nodes.new_empty(len(order.edges), 2 * width)  # (S, 3d), (E, 2d)
        grad_states = torch.zeros_like(states)
        arrays = [a.detach().numpy() for a in (nodes, states, rows)]
        filled = [a.numpy() for a in (grad_out.contiguous(), grad_nodes, grads)]
        tasks = row_ranges(len(nodes))
        run_tasks(lambda task: gated_edge_gradients(*arrays, *order[:3], *task, *filled), tasks)
        if len(order.edges):
            run_tasks(lambda task: gated_source_gradients(*order[4:], *task, filled[2], filled[1]), tasks)
        else:
            grad_nodes[:, width:] = 0
        if ctx.needs_input_grad[1]:
            columns = [(c, c + 16) for c in range(0, 2 * width, 16)]
            run_tasks(
                lambda task: gated_state_gradients(arrays[2], order.edges, *task, filled[2], grad_states.numpy()),
                columns,
            )
        return grad_nodes, grad_states, None, None
