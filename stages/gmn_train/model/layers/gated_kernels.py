"""Gated sums over edges as serial loops over vectors of channels, d of them padded to whole vectors.

    out_i = Σ over edges j -> i of sigmoid(K_i + Q_j + G_e) (V_j + U_e)

nodes (S, 3d) is K beside Q beside V; states (rows, 2d) is G beside U, row `state_rows[e]` of edge e. Nothing of the size
of the edges is stored on the way forward; on the way back the gradients of gate and value of every edge are, because they
are summed by target, by source and by edge state.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from numba import njit

from gmn_train.model.tiles.vector_math import sigmoid
from gmn_train.model.tiles.vectors import LANES, fill, load, store


@njit(cache=True, nogil=True)
def gated_sums(nodes, states, state_rows, target_ptr, sources, edges, first, last, out):
    """Fill out (S, d) for rows first..last-1."""
    d = out.shape[1]
    for i in range(first, last):
        for c in range(0, d, LANES):
            key = load(nodes, i * 3 * d + c)
            total = fill(key, 0.0)
            for p in range(target_ptr[i], target_ptr[i + 1]):
                source, state = sources[p] * 3 * d + c, state_rows[edges[p]] * 2 * d + c
                gate = sigmoid(key + load(nodes, source + d) + load(states, state))
                total = total + gate * (load(nodes, source + 2 * d) + load(states, state + d))
            store(out, i * d + c, total)


@njit(cache=True, nogil=True)
def gated_edge_gradients(
    nodes, states, state_rows, target_ptr, sources, edges, first, last, grad_out, grad_nodes, grads
):
    """Of the edges into rows first..last-1: grads (E, 2d) of gate and value by place, and those of K."""
    d = grad_out.shape[1]
    for i in range(first, last):
        for c in range(0, d, LANES):
            key, grad = load(nodes, i * 3 * d + c), load(grad_out, i * d + c)
            total, one = fill(key, 0.0), fill(key, 1.0)
            for p in range(target_ptr[i], target_ptr[i + 1]):
                source, state = sources[p] * 3 * d + c, state_rows[edges[p]] * 2 * d + c
                gate = sigmoid(key + load(nodes, source + d) + load(states, state))
                value = load(nodes, source + 2 * d) + load(states, state + d)
                to_value = grad * gate
                to_gate = to_value * value * (one - gate)
                total = total + to_gate
                store(grads, p * 2 * d + c, to_gate)
                store(grads, p * 2 * d + d + c, to_value)
            store(grad_nodes, i * 3 * d + c, total)


@njit(cache=True, nogil=True)
def gated_source_gradients(source_ptr, places, first, last, grads, grad_nodes):
    """Sums by source: the gradients of Q and V of rows first..last-1."""
    d = grads.shape[1] // 2
    for j in range(first, last):
        for c in range(0, 2 * d, LANES):
            total = load(grads, c)
            total = total - total
            for q in range(source_ptr[j], source_ptr[j + 1]):
                total = total + load(grads, places[q] * 2 * d + c)
            store(grad_nodes, j * 3 * d + d + c, total)


@njit(cache=True, nogil=True)
def gated_state_gradients(state_rows, edges, ch_lo, ch_hi, grads, grad_states):
    """Add to grad_states (rows, 2d), for these columns, what every edge gives its state."""
    d2 = grads.shape[1]
    for p in range(edges.size):
        at = state_rows[edges[p]] * d2
        for c in range(ch_lo, ch_hi, LANES):
            store(grad_states, at + c, load(grad_states, at + c) + load(grads, p * d2 + c))
