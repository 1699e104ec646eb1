"""Gated sums over edges as serial loops over vectors of channels, d of them padded to whole vectors.

    out_i = R_i + Σ over edges j -> i of sigmoid(K_i + Q_j + G_e) (V_j + U_e)

nodes (S, 4d) is K, Q, V, R side by side; states (rows, 2d) is G beside U, row `state_rows[e]` of edge e. Nothing of the
size of the edges is made: the gradient takes the edges by target, by source and, where there are many states, by state,
and computes each gate again every time. A buffer for the edges' gradients (31 MB for 128 peptides at width 96) took
38 ms instead of 17.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from numba import njit

from gmn_train.model.simd.inner import inner
from gmn_train.model.simd.vector_math import sigmoid
from gmn_train.model.simd.vectors import LANES, fill, load, store


@njit(cache=True, nogil=True)
def gated_sums(nodes, states, state_rows, target_ptr, sources, edges, first, last, out):
    """Fill out (S, d) for rows first..last-1."""
    d = out.shape[1]
    for i in range(first, last):
        for c in range(0, d, LANES):
            key, total = load(nodes, i * 4 * d + c), load(nodes, i * 4 * d + 3 * d + c)
            for p in range(target_ptr[i], target_ptr[i + 1]):
                source, state = sources[p] * 4 * d + c, state_rows[edges[p]] * 2 * d + c
                gate = sigmoid(key + load(nodes, source + d) + load(states, state))
                total = total + gate * (load(nodes, source + 2 * d) + load(states, state + d))
            store(out, i * d + c, total)


@inner
def edge_gradients(nodes, states, grad_out, source, target, state, c):
    """Gradients of an edge's gate (before the sigmoid) and value, of LANES channels."""
    d = grad_out.shape[1]
    at, row = source * 4 * d + c, state * 2 * d + c
    gate = sigmoid(load(nodes, target * 4 * d + c) + load(nodes, at + d) + load(states, row))
    to_value = load(grad_out, target * d + c) * gate
    value = load(nodes, at + 2 * d) + load(states, row + d)
    return to_value * value * (fill(gate, 1.0) - gate), to_value


@njit(cache=True, nogil=True)
def gated_node_gradients(
    nodes,
    states,
    state_rows,
    target_ptr,
    sources,
    edges,
    targets,
    source_ptr,
    places,
    first,
    last,
    grad_out,
    grad_nodes,
    sums,
):
    """Fill grad_nodes (S, 4d) of rows first..last-1.

    sums (rows, 2d): what the edges out of these rows give their states is added; of no rows: it is not wanted.
    """
    d, summed = grad_out.shape[1], sums.shape[0] > 0
    for i in range(first, last):
        for c in range(0, d, LANES):
            grad = load(grad_out, i * d + c)
            to_key, to_query, to_value = fill(grad, 0.0), fill(grad, 0.0), fill(grad, 0.0)
            for p in range(target_ptr[i], target_ptr[i + 1]):
                gate, _ = edge_gradients(nodes, states, grad_out, sources[p], i, state_rows[edges[p]], c)
                to_key = to_key + gate
            for q in range(source_ptr[i], source_ptr[i + 1]):
                p = places[q]
                row = state_rows[edges[p]]
                gate, value = edge_gradients(nodes, states, grad_out, i, targets[p], row, c)
                to_query = to_query + gate
                to_value = to_value + value
                if summed:
                    at = row * 2 * d + c
                    store(sums, at, load(sums, at) + gate)
                    store(sums, at + d, load(sums, at + d) + value)
            at = i * 4 * d + c
            store(grad_nodes, at, to_key)
            store(grad_nodes, at + d, to_query)
            store(grad_nodes, at + 2 * d, to_value)
            store(grad_nodes, at + 3 * d, grad)


@njit(cache=True, nogil=True)
def gated_state_gradients(nodes, states, state_rows, sources, edges, targets, ch_lo, ch_hi, grad_out, grad_states):
    """Add to grad_states (rows, 2d), for these channels, what every edge gives its state."""
    d = grad_out.shape[1]
    for p in range(edges.size):
        row = state_rows[edges[p]]
        for c in range(ch_lo, ch_hi, LANES):
            at = row * 2 * d + c
            gate, value = edge_gradients(nodes, states, grad_out, sources[p], targets[p], row, c)
            store(grad_states, at, load(grad_states, at) + gate)
            store(grad_states, at + d, load(grad_states, at + d) + value)
