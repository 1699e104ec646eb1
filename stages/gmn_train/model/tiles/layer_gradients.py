"""The gradient of a BiMamba layer on tiles: a tile's forward pass again, then back through it; see `layer_kernels`.

Gradients of weights are sums over all rows. They are taken in float32 over SUM_ROWS rows at a time, in row order, and
then in float64. Neither depends on the size of a tile: a tile ends where such a run of rows does.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from typing import NamedTuple

import numpy as np
from numba import njit

from gmn_train.model.layers.conv_kernels import flush_conv, make_conv_sums, sequence_conv_gradients
from gmn_train.model.scan.gradient_kernels import flush_sums, make_sums, make_tape, sequence_gradients
from gmn_train.model.scan.kernels import CHUNK, GROUP
from gmn_train.model.simd.inner import inner
from gmn_train.model.simd.rooms import clear_room, room
from gmn_train.model.simd.unowned import hold, unowned
from gmn_train.model.tiles.half_products import product
from gmn_train.model.tiles.layer_kernels import (
    local_borders,
    make_rooms,
    next_tile,
    project_tile,
    scan_inputs,
    scan_tile,
)
from gmn_train.model.tiles.norms import norm_gradients
from gmn_train.model.tiles.products import multiply

SUM_ROWS = 1024


class Totals(NamedTuple):
    """Float64 sums over one range of sequences."""

    products: np.ndarray  # flat: inputs (dp, G), states (k, E, Q), up (k, R, E), outputs (kE, dp), norm (2, d)
    A2: np.ndarray  # (k, blocks, N, LANES)
    conv: np.ndarray  # (k, taps + 1, E)
    D: np.ndarray  # (k, E)
    dt_bias: np.ndarray  # (k, E)


class GradRooms(NamedTuple):
    """What a tile computes on the way back."""

    update: np.ndarray  # (m, dp)
    y: np.ndarray  # (m, kE)
    projected: np.ndarray  # (m, G)
    gates: np.ndarray  # (m, G)
    u: np.ndarray  # (m, E)
    dt: np.ndarray  # (m, E)
    low: np.ndarray  # (m, Q)
    rank: np.ndarray  # (m, R padded)
    normed: np.ndarray  # (m, dp)
    last: np.ndarray  # (m, dp)


@inner
def make_grad_rooms(rows, w):
    like = w.inputs
    (dp, G), (k, E, Q), P = w.inputs.shape, w.states.shape, w.up_back.shape[2]
    return GradRooms(
        clear_room(rows * dp, like).reshape(rows, dp),
        room(rows * k * E, like).reshape(rows, k * E),
        room(rows * G, like).reshape(rows, G),
        room(rows * G, like).reshape(rows, G),
        room(rows * E, like).reshape(rows, E),
        room(rows * E, like).reshape(rows, E),
        clear_room(rows * Q, like).reshape(rows, Q),
        room(rows * P, like).reshape(rows, P),
        room(rows * dp, like).reshape(rows, dp),
        room(rows * dp, like).reshape(rows, dp),
    )


@inner
def direction_gradients(
    source, gates, grad_source, grad_gates, ptr, seq_lo, seq_hi, ends, direction, w, r, g, tape, sums, conv_sums, acc
):
    """Back through one direction: from g.y to its columns of the projections' gradients, and sums for its weights."""
    single = ends and direction == 1
    (dp, G), (k, E, Q), R, N = w.inputs.shape, w.states.shape, w.up.shape[1], w.A2.shape[2]
    rows = seq_hi - seq_lo if single else ptr[seq_hi] - ptr[seq_lo]
    states_at = dp * G + direction * E * Q
    up_at = dp * G + k * E * Q + direction * R * E
    scan_inputs(source, ptr, seq_lo, seq_hi, single, direction, w, r)
    flat_low = g.low.reshape(-1)
    for s in range(seq_lo, seq_hi):
        lo, hi = local_borders(ptr, s, seq_lo, single)
        end = s - seq_lo if ends and not single else -1
        if hi - lo > CHUNK:  # the states between chunks, which no forward pass kept
            scan_tile(gates, ptr, seq_lo, ends, single, True, direction, w, r, s, s + 1)
        for at in range(0, E, GROUP):
            sequence_gradients(
                r.u, 0, r.dt, 0, w.A2[direction], r.low, w.D[direction], w.dt_bias[direction], gates,
                (2 * direction + 1) * E, True, True, lo, hi, direction == 1, at, min(at + GROUP, E), end,
                True, True, 0, r.kept, tape, True, r.y, direction * E, g.y, direction * E, g.u, g.dt, flat_low, at > 0,
                grad_gates, (2 * direction + 1) * E, sums,
            )  # fmt: skip
    multiply(g.rank, 0, g.rank.shape[1], rows, g.rank.shape[1], g.dt, 0, E, 1,
             w.up_back, direction * E * g.rank.shape[1], g.rank.shape[1], E, False)  # fmt: skip
    for i in range(rows):
        for j in range(R):
            g.low[i, 2 * N + j] = g.rank[i, j]
    multiply(acc, up_at, E, R, E, r.low, 2 * N, 1, Q, g.dt, 0, E, rows, True)
    product(g.u, 0, E, rows, E, g.low, 0, Q, 1, w.states_back, direction * Q * E, E, 2 * N + R, True, r.pairs)
    product(acc, states_at, Q, E, Q, r.u, 0, 1, E, g.low, 0, Q, rows, True, r.pairs)
    for s in range(seq_lo, seq_hi):
        lo, hi = local_borders(ptr, s, seq_lo, single)
        sequence_conv_gradients(
            source, 2 * direction * E, w.conv[direction], w.conv_bias[direction], lo, hi, direction == 1, 0, 0, E,
            g.u, grad_source, 2 * direction * E, conv_sums,
        )  # fmt: skip


@inner
def tile_gradients(x, eps, ptr, seq_lo, seq_hi, ends, residual, w, r, g, tape, sums, conv_sums, acc, grad_out, grad_x):
    """Gradients of one tile; `sums`, `conv_sums`: one of each per direction."""
    (dp, G), (k, E, Q), R, d = w.inputs.shape, w.states.shape, w.up.shape[1], x.shape[1]
    begin, rows, count = ptr[seq_lo], ptr[seq_hi] - ptr[seq_lo], seq_hi - seq_lo
    wanted = count if ends else rows
    outputs_at = dp * G + k * E * Q + k * R * E
    project_tile(x, eps, ptr, seq_lo, seq_hi, ends, w, r)
    for i in range(wanted):
        grad_i, update_i = grad_out[seq_lo + i if ends else begin + i], g.update[i]
        for j in range(d):
            update_i[j] = grad_i[j]
    product(g.y, 0, k * E, wanted, k * E, g.update, 0, dp, 1, w.outputs_back, 0, k * E, d, False, r.pairs)
    for direction in range(k):
        single = ends and direction == 1
        source, grad_source = (r.gates, g.gates) if single else (r.projected, g.projected)
        gates, grad_gates = (r.gates, g.gates) if ends else (r.projected, g.projected)
        direction_gradients(
            source, gates, grad_source, grad_gates, ptr, seq_lo, seq_hi, ends, direction, w, r, g, tape,
            sums[direction], conv_sums[direction], acc,
        )  # fmt: skip
    product(acc, outputs_at, dp, k * E, dp, r.y, 0, 1, k * E, g.update, 0, dp, wanted, True, r.pairs)
    columns = E if ends else G
    product(g.normed, 0, dp, rows, dp, g.projected, 0, G, 1, w.inputs_back, 0, dp, columns, False, r.pairs)
    product(acc, 0, G, d, columns, r.normed, 0, 1, dp, g.projected, 0, G, rows, True, r.pairs)
    if ends:
        product(g.last, 0, dp, count, dp, g.gates, E, G, 1, w.inputs_back, E * dp, dp, G - E, False, r.pairs)
        product(acc, E, G, d, G - E, r.last, 0, 1, dp, g.gates, E, G, count, True, r.pairs)
        for s in range(seq_lo, seq_hi):
            at = ptr[s + 1] - 1 - begin
            for j in range(d):
                g.normed[at, j] += g.last[s - seq_lo, j]
    for i in range(begin, begin + rows):
        for j in range(d):
            grad_x[i, j] = 0
    if residual:
        for i in range(wanted):
            at = ptr[seq_lo + i + 1] - 1 if ends else begin + i
            for j in range(d):
                grad_x[at, j] = g.update[i, j]
    norm_gradients(x, begin, 0, rows, w.norm, r.moments, g.normed, acc, outputs_at + k * E * dp, grad_x)


@inner
def flush_products(acc, total):
    for i in range(acc.size):
        total[i] += acc[i]
        acc[i] = 0


@njit(cache=True, nogil=True)
def layer_gradients(x, eps, ptr, seq_lo, seq_hi, tile_rows, ends, residual, half, w, grad_out, grad_x, totals):
    """Fill grad_x (total, d) of sequences [seq_lo, seq_hi), and the totals of their weights' gradients, which are
    zero."""
    longest = 0
    for s in range(seq_lo, seq_hi):
        longest = max(longest, ptr[s + 1] - ptr[s])
    rows, k = max(tile_rows, longest), w.states.shape[0]
    rooms = make_rooms(rows, longest, w, half), make_grad_rooms(rows, w), make_tape(w.D.shape[1], w.A2.shape[2], x)
    b = k - 1
    all_sums = (
        make_sums(w.A2[0], x, totals.A2[0], totals.D[0], totals.dt_bias[0]),
        make_sums(w.A2[b], x, totals.A2[b], totals.D[b], totals.dt_bias[b]),
    )
    all_conv_sums = (make_conv_sums(x, totals.conv[0]), make_conv_sums(x, totals.conv[b]))
    products = clear_room(totals.products.size, x)
    memory = (rooms, all_sums, all_conv_sums, products)
    x, ptr, w, grad_out, grad_x = unowned(x), unowned(ptr), unowned(w), unowned(grad_out), unowned(grad_x)
    (r, g, tape), sums, conv_sums, acc = unowned(memory)
    first, run = seq_lo, seq_lo
    while first < seq_hi:
        if first == run:  # where the run of rows that are summed in float32 ends
            run = next_tile(ptr, first, seq_hi, SUM_ROWS)
        last = next_tile(ptr, first, run, tile_rows)
        tile_gradients(x, eps, ptr, first, last, ends, residual, w, r, g, tape, sums, conv_sums, acc, grad_out, grad_x)
        if last == run:
            flush_products(acc, totals.products)
        first = last
    for direction in range(k):
        flush_sums(sums[direction], 0, w.D.shape[1])
        flush_conv(conv_sums[direction], 0, w.D.shape[1])
    hold(memory)
