"""A BiMamba layer on sequences longer than a tile: one direction of one sequence after the other, tile by tile in scan
order.

A tile takes over the state of the tile before it, and the `taps - 1` rows before it for the convolution (its *halo*);
on the way back it takes over the gradient of its last state from the tile after it, and that of its last rows. States
are kept every CHUNK steps, (rows / CHUNK, E, N): as much as one (rows, d) tensor. Rooms and weights as in
`layer_kernels`; directions do not meet before their updates are added, so they are separate tasks.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from numba import njit

from gmn_train.model.layers.conv_kernels import flush_conv, make_conv_sums, sequence_conv, sequence_conv_gradients
from gmn_train.model.scan.gradient_kernels import flush_sums, make_sums, make_tape, sequence_gradients
from gmn_train.model.scan.kernels import CHUNK, GROUP, sequence_outputs
from gmn_train.model.simd.inner import inner
from gmn_train.model.simd.rooms import clear_room
from gmn_train.model.simd.unowned import hold, unowned
from gmn_train.model.tiles.half_products import product
from gmn_train.model.tiles.layer_gradients import SUM_ROWS, flush_products, make_grad_rooms
from gmn_train.model.tiles.layer_kernels import make_rooms
from gmn_train.model.tiles.norms import norm_gradients, normalise_rows
from gmn_train.model.tiles.products import multiply

LONG_ROWS = 3 * CHUNK


@inner
def tile_borders(lo, hi, step, taps, reverse):
    """Of the tile from scan step `step` of rows [lo, hi): its first row with halo, all rows, its own [a, b) among
    them."""
    steps, halo = min(LONG_ROWS, hi - lo - step), min(taps - 1, step)
    if reverse:
        return hi - step - steps, steps + halo, 0, steps
    return lo + step - halo, steps + halo, halo, halo + steps


@inner
def prepare_tile(x, eps, begin, rows, a, b, direction, w, r):
    """Norm, projections, convolution, B, C and Δ of a tile's own rows [a, b)."""
    (dp, G), (_, E, Q), R, N = w.inputs.shape, w.states.shape, w.up.shape[1], w.A2.shape[2]
    normalise_rows(x, begin, rows, w.norm, eps, r.moments, r.normed)
    product(
        r.projected, 2 * direction * E, G, rows, 2 * E, r.normed, 0, dp, 1, w.inputs, 2 * direction * E, G,
        x.shape[1], False, r.pairs,
    )  # fmt: skip
    sequence_conv(
        r.projected, 2 * direction * E, w.conv[direction], w.conv_bias[direction], 0, rows, direction == 1,
        rows - (b - a), 0, E, r.u,
    )  # fmt: skip
    product(r.low, a * Q, Q, b - a, Q, r.u, a * E, E, 1, w.states, direction * E * Q, Q, E, False, r.pairs)
    multiply(r.dt, a * E, E, b - a, E, r.low, a * Q + 2 * N, Q, 1, w.up, direction * R * E, E, R, False)


@njit(cache=True, nogil=True)
def long_outputs(x, eps, ptr, seq_lo, seq_hi, direction, half, w, keep, kept_ptr, kept, out):
    """Fill out (total, d) with one direction's update of sequences [seq_lo, seq_hi); states to `kept` where `keep`."""
    taps, reverse, d = w.conv.shape[1], direction == 1, x.shape[1]
    dp, (k, E, _) = w.inputs.shape[0], w.states.shape
    memory = make_rooms(LONG_ROWS + taps, 0, w, half)
    x, w, kept, out, r = unowned(x), unowned(w), unowned(kept), unowned(out), unowned(memory)
    for s in range(seq_lo, seq_hi):
        for step in range(0, ptr[s + 1] - ptr[s], LONG_ROWS):
            begin, rows, a, b = tile_borders(ptr[s], ptr[s + 1], step, taps, reverse)
            prepare_tile(x, eps, begin, rows, a, b, direction, w, r)
            sequence_outputs(
                r.u, 0, r.dt, 0, w.A2[direction], r.low, w.D[direction], w.dt_bias[direction], r.projected,
                (2 * direction + 1) * E, True, True, a, b, reverse, 0, E, -1,
                step == 0, keep, kept_ptr[s] + max(step // CHUNK - 1, 0), kept, r.h, r.deltas, r.ys, r.y, direction * E,
            )  # fmt: skip
            product(
                r.last, a * dp, dp, b - a, dp, r.y, a * k * E + direction * E, k * E, 1, w.outputs,
                direction * E * dp, dp, E, False, r.pairs,
            )  # fmt: skip
            for i in range(a, b):
                for j in range(d):
                    out[begin + i, j] = r.last[i, j]
    hold(memory)


@inner
def long_tile_gradients(
    x, eps, begin, rows, a, b, fresh, ended, k_at, kept, direction, w, r, g, tape, sums, conv_sums, acc, carry,
    grad_out, grad_x,
):  # fmt: skip
    """Gradients of one tile; carry (taps, E): what the tile after it gives to the last rows of this one's
    projections."""
    (dp, G), (k, E, Q), R, N, d = w.inputs.shape, w.states.shape, w.up.shape[1], w.A2.shape[2], x.shape[1]
    P, halo, own, x_col, reverse = g.rank.shape[1], rows - (b - a), b - a, 2 * direction * E, direction == 1
    states_at, up_at = dp * G + direction * E * Q, dp * G + k * E * Q + direction * R * E
    outputs_at = dp * G + k * E * Q + k * R * E
    prepare_tile(x, eps, begin, rows, a, b, direction, w, r)
    for i in range(a, b):
        for j in range(d):
            g.update[i, j] = grad_out[begin + i, j]
    product(
        g.y, a * k * E + direction * E, k * E, own, E, g.update, a * dp, dp, 1, w.outputs_back, direction * E, k * E,
        d, False, r.pairs,
    )  # fmt: skip
    flat_low = g.low.reshape(-1)
    for at in range(0, E, GROUP):
        sequence_gradients(
            r.u, 0, r.dt, 0, w.A2[direction], r.low, w.D[direction], w.dt_bias[direction], r.projected, x_col + E,
            True, True, a, b, reverse, at, min(at + GROUP, E), -1,
            fresh, ended, k_at, kept, tape, True, r.y, direction * E, g.y, direction * E, g.u, g.dt, flat_low, at > 0,
            g.projected, x_col + E, sums,
        )  # fmt: skip
    product(acc, outputs_at + direction * E * dp, dp, E, dp, r.y, a * k * E + direction * E, 1, k * E,
            g.update, a * dp, dp, own, True, r.pairs)  # fmt: skip
    multiply(g.rank, a * P, P, own, P, g.dt, a * E, E, 1, w.up_back, direction * E * P, P, E, False)
    for i in range(a, b):
        for j in range(R):
            g.low[i, 2 * N + j] = g.rank[i, j]
    multiply(acc, up_at, E, R, E, r.low, a * Q + 2 * N, 1, Q, g.dt, a * E, E, own, True)
    product(g.u, a * E, E, own, E, g.low, a * Q, Q, 1, w.states_back, direction * Q * E, E, 2 * N + R, True, r.pairs)
    product(acc, states_at, Q, E, Q, r.u, a * E, 1, E, g.low, a * Q, Q, own, True, r.pairs)
    for i in range(halo):  # rows of the tile before, which this one's convolution reads
        row = b + i if reverse else i
        for j in range(E):
            g.projected[row, x_col + j] = 0
    sequence_conv_gradients(
        r.projected, x_col, w.conv[direction], w.conv_bias[direction], 0, rows, reverse, halo, 0, E,
        g.u, g.projected, x_col, conv_sums,
    )  # fmt: skip
    if not ended:
        for i in range(w.conv.shape[1] - 1):
            row = i if reverse else b - 1 - i
            for j in range(E):
                g.projected[row, x_col + j] += carry[i, j]
    for i in range(halo):
        row = b + i if reverse else a - 1 - i
        for j in range(E):
            carry[i, j] = g.projected[row, x_col + j]
    product(
        g.normed, a * dp, dp, own, dp, g.projected, a * G + x_col, G, 1, w.inputs_back, x_col * dp, dp, 2 * E, False,
        r.pairs,
    )  # fmt: skip
    product(acc, x_col, G, d, 2 * E, r.normed, a * dp, 1, dp, g.projected, a * G + x_col, G, own, True, r.pairs)
    norm_gradients(x, begin, a, b, w.norm, r.moments, g.normed, acc, outputs_at + k * E * dp, grad_x)


@njit(cache=True, nogil=True)
def long_gradients(x, eps, ptr, seq_lo, seq_hi, direction, half, w, kept_ptr, kept, grad_out, grad_x, totals):
    """Add one direction's gradient to grad_x (total, d) of sequences [seq_lo, seq_hi), and fill the totals, which
    are zero."""
    taps, E = w.conv.shape[1], w.states.shape[1]
    memory = (
        (
            make_rooms(LONG_ROWS + taps, 0, w, half),
            make_grad_rooms(LONG_ROWS + taps, w),
            make_tape(E, w.A2.shape[2], x),
        ),
        make_sums(w.A2[direction], x, totals.A2[direction], totals.D[direction], totals.dt_bias[direction]),
        make_conv_sums(x, totals.conv[direction]),
        clear_room(totals.products.size, x),
        clear_room(taps * E, x).reshape(taps, E),
    )
    x, w, kept, grad_out, grad_x = unowned(x), unowned(w), unowned(kept), unowned(grad_out), unowned(grad_x)
    (r, g, tape), sums, conv_sums, acc, carry = unowned(memory)
    pending = 0
    for s in range(seq_lo, seq_hi):
        length = ptr[s + 1] - ptr[s]
        for tile in range((length + LONG_ROWS - 1) // LONG_ROWS - 1, -1, -1):
            step = tile * LONG_ROWS
            begin, rows, a, b = tile_borders(ptr[s], ptr[s + 1], step, taps, direction == 1)
            long_tile_gradients(
                x, eps, begin, rows, a, b, step == 0, step + LONG_ROWS >= length,
                kept_ptr[s] + max(step // CHUNK - 1, 0), kept, direction, w, r, g, tape, sums, conv_sums, acc, carry,
                grad_out, grad_x,
            )  # fmt: skip
            pending += b - a
            if pending >= SUM_ROWS:
                flush_products(acc, totals.products)
                pending = 0
    flush_products(acc, totals.products)
    flush_sums(sums, 0, E)
    flush_conv(conv_sums, 0, E)
    hold(memory)
