"""GatedGCN's messages without a product per edge, for the weights of PyG's ResGatedGraphConv.

PyG multiplies each edge's (node state, edge state) by W_key, W_query and W_value: three (E, 2d) x (2d, d) products. A
product of two things side by side is the sum of two products, so node states are multiplied once per node, edge states
once per distinct state, and a kernel adds, gates and sums.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from gmn_train.machine.threads import run_tasks
from gmn_train.model.layers.rowwise.full_precision import full
from gmn_train.model.message_passing.edge_order import EdgeOrder, row_ranges
from gmn_train.model.message_passing.edge_states import EdgeStates
from gmn_train.model.message_passing.gated_kernels import gated_node_gradients, gated_state_gradients, gated_sums
from gmn_train.model.message_passing.state_sums import FEW_STATES, StateSums
from gmn_train.model.simd.vectors import LANES


def gated_outputs(
    convolution: Any, x: Tensor, order: EdgeOrder, edges: EdgeStates | None, skip: nn.Linear | None = None
) -> Tensor:
    """What convolution(x, edge_index, edge states) gives, plus skip(x): (S, d).

    The convolution has a linear map of x itself, so the other one's weights are added to it instead of its rows.
    """
    key, query, value = (getattr(convolution, f"lin_{name}") for name in ("key", "query", "value"))
    d = x.shape[1]
    of_nodes = [layer.weight[:, :d] for layer in (key, query, value, convolution.lin_skip)]
    biases = [key.bias + query.bias, torch.zeros_like(key.bias), value.bias, convolution.bias]
    if skip is not None:
        of_nodes[3], biases[3] = of_nodes[3] + skip.weight, biases[3] + skip.bias
    nodes = full(linear(x, pad_rows(of_nodes), pad_rows(biases)))  # (S, 4d), d padded
    if edges is None:
        states, rows = x.new_zeros(1, nodes.shape[1] // 2), torch.zeros(len(order.edges), dtype=torch.int64)
    else:
        of_edges = [key.weight[:, d:] + query.weight[:, d:], value.weight[:, d:]]
        states = full(linear(edges.values, pad_rows(of_edges)))  # (K, 2d)
        rows = torch.arange(len(states)) if edges.rows is None else edges.rows
    summed: Tensor = GatedSums.apply(nodes, states, rows, order)  # type: ignore[no-untyped-call]
    return summed[:, :d]


def pad_rows(parts: list[Tensor]) -> Tensor:
    """Weights or biases of several maps below each other, each padded to whole vectors of outputs."""
    extra = -len(parts[0]) % LANES
    return torch.cat([pad(p, (0, 0, 0, extra) if p.dim() == 2 else (0, extra)) for p in parts] if extra else parts)


class GatedSums(torch.autograd.Function):
    """Autograd node around the kernels."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, states: Tensor, rows: Tensor, order: EdgeOrder) -> Tensor:
        out = nodes.new_empty(len(nodes), nodes.shape[1] // 4)
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
        grad_nodes, grad_states = torch.empty_like(nodes), torch.zeros_like(states)  # (S, 4d), (K, 2d)
        arrays, dy = [a.detach().numpy() for a in (nodes, states, rows)], grad_out.contiguous().numpy()
        few = ctx.needs_input_grad[1] and len(states) <= FEW_STATES
        sums = StateSums(row_ranges(len(nodes)), states, wanted=few)
        run_tasks(
            lambda n: gated_node_gradients(*arrays, *order, *sums.ranges[n], dy, grad_nodes.numpy(), sums.parts[n]),
            range(len(sums.ranges)),
        )
        if few:
            grad_states = sums.total()
        elif ctx.needs_input_grad[1]:
            columns = [(c, c + LANES) for c in range(0, nodes.shape[1] // 4, LANES)]
            run_tasks(lambda task: gated_state_gradients(*arrays, *order[1:4], *task, dy, grad_states.numpy()), columns)
        return grad_nodes, grad_states, None, None
