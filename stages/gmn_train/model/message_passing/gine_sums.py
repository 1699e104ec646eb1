"""GINE's messages in one kernel, for the weights of PyG's GINEConv: MLP((1 + eps) x + Σ ReLU(x_neighbour + edge)).

Nothing of the size of the edges is made, on the way back either. Sums are over the edges into a row, or out of it, in
the order of the edge index. Where edges share a few states, as bonds do, their gradients are summed in the same pass as
those of the nodes: 4,832 nodes, 9,900 edges, width 220, one thread: 1.2 + 1.6 ms, as two passes 1.2 + 6.6 ms.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from typing import Any

import torch
from numba import njit
from torch import Tensor, nn

from gmn_train.machine.threads import run_tasks
from gmn_train.model.message_passing.edge_order import EdgeOrder, row_ranges
from gmn_train.model.message_passing.edge_states import EdgeStates
from gmn_train.model.message_passing.state_sums import FEW_STATES, StateSums

CHANNELS_PER_TASK = 16


@njit(cache=True, nogil=True)
def relu_sums(x, states, state_rows, target_ptr, sources, edges, first, last, out):
    """out_i = Σ over edges j -> i of relu(x_j + states of the edge), for rows first..last-1."""
    zero = x.dtype.type(0)
    for i in range(first, last):
        out_i = out[i]
        for c in range(out_i.size):
            out_i[c] = zero
        for p in range(target_ptr[i], target_ptr[i + 1]):
            x_j, state = x[sources[p]], states[state_rows[edges[p]]]
            for c in range(out_i.size):
                out_i[c] += max(x_j[c] + state[c], zero)


@njit(cache=True, nogil=True)
def relu_sum_gradients(x, states, state_rows, edges, targets, source_ptr, places, first, last, grad_out, grad_x, sums):
    """The gradient of x_j, a sum over the edges out of j, for rows first..last-1.

    sums (states, d): what these edges give their states is added; of no rows: it is not wanted.
    """
    zero, summed = x.dtype.type(0), sums.shape[0] > 0
    for j in range(first, last):
        x_j, grad_j = x[j], grad_x[j]
        for c in range(grad_j.size):
            grad_j[c] = zero
        for q in range(source_ptr[j], source_ptr[j + 1]):
            p = places[q]
            row = state_rows[edges[p]]
            grad_i, state = grad_out[targets[p]], states[row]
            if summed:
                sum_e = sums[row]
                for c in range(grad_j.size):
                    g = grad_i[c] if x_j[c] + state[c] > zero else zero
                    grad_j[c] += g
                    sum_e[c] += g
            else:
                for c in range(grad_j.size):
                    grad_j[c] += grad_i[c] if x_j[c] + state[c] > zero else zero


@njit(cache=True, nogil=True)
def relu_state_gradients(x, states, state_rows, sources, edges, targets, ch_lo, ch_hi, grad_out, grad_states):
    """Add to grad_states, for these channels, what every edge gives its state."""
    zero = x.dtype.type(0)
    for p in range(edges.size):
        row = state_rows[edges[p]]
        x_j, grad_i = x[sources[p], ch_lo:ch_hi], grad_out[targets[p], ch_lo:ch_hi]
        state, grad = states[row, ch_lo:ch_hi], grad_states[row, ch_lo:ch_hi]
        for c in range(ch_hi - ch_lo):
            grad[c] += grad_i[c] if x_j[c] + state[c] > zero else zero


def gine_outputs(
    convolution: nn.Module, x: Tensor, order: EdgeOrder, edges: EdgeStates | None, targets: int | None = None
) -> Tensor:
    """What convolution(x, edge_index, edge states) gives: (S, d), or of the first `targets` rows only."""
    summed = relu_messages(x, order, edges)[:targets]
    out: Tensor = convolution.nn(summed + (1 + convolution.eps) * x[:targets])  # type: ignore[operator]
    return out


def relu_messages(x: Tensor, order: EdgeOrder, edges: EdgeStates | None) -> Tensor:
    """Σ over edges j -> i of ReLU(x_j + the edge's state): (S, d)."""
    if edges is None:
        states, rows = x.new_zeros(1, x.shape[1]), torch.zeros(len(order.edges), dtype=torch.int64)
    else:
        states = edges.values
        rows = torch.arange(len(states)) if edges.rows is None else edges.rows
    summed: Tensor = ReluSums.apply(x, states, rows, order)  # type: ignore[no-untyped-call]
    return summed


class ReluSums(torch.autograd.Function):
    """Autograd node around the kernels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, states: Tensor, rows: Tensor, order: EdgeOrder) -> Tensor:
        x, states = x.contiguous(), states.contiguous()
        out = torch.empty_like(x)
        arrays = [a.detach().numpy() for a in (x, states, rows)]
        run_tasks(lambda task: relu_sums(*arrays, *order[:3], *task, out.numpy()), row_ranges(len(x)))
        ctx.save_for_backward(x, states, rows)
        ctx.order = order
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        x, states, rows = ctx.saved_tensors
        order: EdgeOrder = ctx.order
        grad_x, grad_states = torch.empty_like(x), torch.zeros_like(states)
        arrays, dy = [a.detach().numpy() for a in (x, states, rows)], grad_out.contiguous().numpy()
        few = ctx.needs_input_grad[1] and len(states) <= FEW_STATES
        sums = StateSums(row_ranges(len(x)), states, wanted=few)
        run_tasks(
            lambda n: relu_sum_gradients(*arrays, *order[2:], *sums.ranges[n], dy, grad_x.numpy(), sums.parts[n]),
            range(len(sums.ranges)),
        )
        if few:
            grad_states = sums.total()
        elif ctx.needs_input_grad[1]:
            width = x.shape[1]
            columns = [(c, min(c + CHANNELS_PER_TASK, width)) for c in range(0, width, CHANNELS_PER_TASK)]
            run_tasks(lambda task: relu_state_gradients(*arrays, *order[1:4], *task, dy, grad_states.numpy()), columns)
        return grad_x, grad_states, None, None
