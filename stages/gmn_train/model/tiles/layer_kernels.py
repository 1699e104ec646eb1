"""A BiMamba layer on tiles of whole sequences: norm, projections, convolution, Δ/B/C, scans, gate and output in one go.

Everything between the layer's input and its output lives in rooms that stay in the level-2 cache and are used again for
the next tile. Shapes: m rows of a tile, d features padded to dp, E channels padded likewise, k directions of them, N
states (a multiple of four), R the rank of Δ, Q = 2N + R padded; G = 2kE columns of all input projections, per direction
those of x and of the gate.

With `ends`, only each sequence's last row is wanted: the gate and the whole backward direction then see one row per
sequence.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from typing import NamedTuple

import numpy as np
from numba import njit

from gmn_train.model.layers.conv_kernels import sequence_conv
from gmn_train.model.scan.kernels import CHUNK, GROUP, sequence_outputs
from gmn_train.model.simd.inner import inner
from gmn_train.model.simd.rooms import clear_room, room
from gmn_train.model.simd.unowned import hold, unowned
from gmn_train.model.tiles.half_products import pairs_room, product
from gmn_train.model.tiles.norms import normalise_rows
from gmn_train.model.tiles.products import multiply


class Weights(NamedTuple):
    """A layer's weights, padded and side by side: see `packing`."""

    norm: np.ndarray  # (2, d): weight, bias
    inputs: np.ndarray  # (dp, G)
    inputs_back: np.ndarray  # (G, dp)
    states: np.ndarray  # (k, E, Q): B, C and the low rank of Δ
    states_back: np.ndarray  # (k, Q, E)
    up: np.ndarray  # (k, R, E): Δ from its low rank
    up_back: np.ndarray  # (k, E, R padded)
    outputs: np.ndarray  # (kE, dp)
    outputs_back: np.ndarray  # (dp, kE)
    A2: np.ndarray  # (k, blocks, N, LANES)
    conv: np.ndarray  # (k, taps, E)
    conv_bias: np.ndarray  # (k, E)
    D: np.ndarray  # (k, E)
    dt_bias: np.ndarray  # (k, E)


class Rooms(NamedTuple):
    """What a tile computes on the way forward."""

    moments: np.ndarray  # (m, 2): mean and 1 / deviation of each row
    normed: np.ndarray  # (m, dp)
    last: np.ndarray  # (m, dp): the last row of each sequence, with `ends`
    projected: np.ndarray  # (m, G)
    gates: np.ndarray  # (m, G): projections of the last rows, with `ends`
    u: np.ndarray  # (m, E)
    low: np.ndarray  # (m, Q)
    dt: np.ndarray  # (m, E)
    y: np.ndarray  # (m, kE)
    h: np.ndarray
    deltas: np.ndarray
    ys: np.ndarray
    kept: np.ndarray  # (chunks, blocks, N, LANES)
    pairs: np.ndarray  # of bfloat16, for products; empty in float32


@inner
def make_rooms(rows, longest, w, half):
    like = w.inputs
    (dp, G), (k, E, Q), N = w.inputs.shape, w.states.shape, w.A2.shape[2]
    kept = max((longest - 1) // CHUNK, 0)
    return Rooms(
        room(rows * 2, like).reshape(rows, 2),
        clear_room(rows * dp, like).reshape(rows, dp),
        clear_room(rows * dp, like).reshape(rows, dp),
        room(rows * G, like).reshape(rows, G),
        room(rows * G, like).reshape(rows, G),
        room(rows * E, like).reshape(rows, E),
        room(rows * Q, like).reshape(rows, Q),
        room(rows * E, like).reshape(rows, E),
        room(rows * k * E, like).reshape(rows, k * E),
        room(E * N, like),
        room(CHUNK * GROUP, like),
        room(CHUNK * GROUP, like),
        room(kept * E * N, like),
        pairs_room(rows, max(G, Q), half),
    )


@njit(inline="always")
def local_borders(ptr, s, seq_lo, single):
    """Rows of sequence s in its tile; `single`: one row per sequence."""
    if single:
        return s - seq_lo, s - seq_lo + 1
    return ptr[s] - ptr[seq_lo], ptr[s + 1] - ptr[seq_lo]


@inner
def project_tile(x, eps, ptr, seq_lo, seq_hi, ends, w, r):
    """Norm and input projections of sequences [seq_lo, seq_hi)."""
    rows, count = ptr[seq_hi] - ptr[seq_lo], seq_hi - seq_lo
    (dp, G), E, d = w.inputs.shape, w.states.shape[1], x.shape[1]
    normalise_rows(x, ptr[seq_lo], rows, w.norm, eps, r.moments, r.normed)
    if not ends:
        product(r.projected, 0, G, rows, G, r.normed, 0, dp, 1, w.inputs, 0, G, d, False, r.pairs)
        return
    product(r.projected, 0, G, rows, E, r.normed, 0, dp, 1, w.inputs, 0, G, d, False, r.pairs)
    for s in range(seq_lo, seq_hi):
        for j in range(d):
            r.last[s - seq_lo, j] = r.normed[ptr[s + 1] - 1 - ptr[seq_lo], j]
    product(r.gates, E, G, count, G - E, r.last, 0, dp, 1, w.inputs, E, G, d, False, r.pairs)


@inner
def scan_inputs(source, ptr, seq_lo, seq_hi, single, direction, w, r):
    """u, B and C, and Δ before bias and softplus, of one direction; `source`: where its projections are."""
    rows = seq_hi - seq_lo if single else ptr[seq_hi] - ptr[seq_lo]
    (_, E, Q), R, N = w.states.shape, w.up.shape[1], w.A2.shape[2]
    for s in range(seq_lo, seq_hi):
        lo, hi = local_borders(ptr, s, seq_lo, single)
        sequence_conv(
            source, 2 * direction * E, w.conv[direction], w.conv_bias[direction], lo, hi, direction == 1, 0, 0, E, r.u
        )
    product(r.low, 0, Q, rows, Q, r.u, 0, E, 1, w.states, direction * E * Q, Q, E, False, r.pairs)
    multiply(r.dt, 0, E, rows, E, r.low, 2 * N, Q, 1, w.up, direction * R * E, E, R, False)


@inner
def scan_tile(gates, ptr, seq_lo, ends, single, keep, direction, w, r, s_lo, s_hi):
    """The gated scans of one direction of sequences [s_lo, s_hi) of the tile, into its columns of r.y."""
    E = w.states.shape[1]
    for s in range(s_lo, s_hi):
        lo, hi = local_borders(ptr, s, seq_lo, single)
        end = s - seq_lo if ends and not single else -1
        sequence_outputs(
            r.u, 0, r.dt, 0, w.A2[direction], r.low, w.D[direction], w.dt_bias[direction], gates,
            (2 * direction + 1) * E, True, True, lo, hi, direction == 1, 0, E, end,
            True, keep, 0, r.kept, r.h, r.deltas, r.ys, r.y, direction * E,
        )  # fmt: skip


@inner
def next_tile(ptr, first, last, rows):
    """Where the tile that begins at sequence `first` ends: as many sequences as fit, at least one."""
    end = first + 1
    while end < last and ptr[end + 1] - ptr[first] <= rows:
        end += 1
    return end


@njit(cache=True, nogil=True)
def layer_outputs(x, eps, ptr, seq_lo, seq_hi, tile_rows, ends, residual, half, w, out):
    """Fill out (total, d), or (sequences, d) with `ends`, for sequences [seq_lo, seq_hi); residual: x is added.

    half: products of bfloat16.
    """
    longest = 0
    for s in range(seq_lo, seq_hi):
        longest = max(longest, ptr[s + 1] - ptr[s])
    dp, E, k, d = w.inputs.shape[0], w.states.shape[1], w.states.shape[0], x.shape[1]
    memory = make_rooms(max(tile_rows, longest), longest, w, half)
    rest = room(memory.normed.size, x).reshape(memory.normed.shape)
    x, ptr, w, out, r, update = unowned(x), unowned(ptr), unowned(w), unowned(out), unowned(memory), unowned(rest)
    first = seq_lo
    while first < seq_hi:
        last = next_tile(ptr, first, seq_hi, tile_rows)
        begin, rows = ptr[first], ptr[last] - ptr[first]
        project_tile(x, eps, ptr, first, last, ends, w, r)
        for direction in range(k):
            single = ends and direction == 1
            source, gates = r.gates if single else r.projected, r.gates if ends else r.projected
            scan_inputs(source, ptr, first, last, single, direction, w, r)
            scan_tile(gates, ptr, first, ends, single, False, direction, w, r, first, last)
        wanted = last - first if ends else rows
        product(update, 0, dp, wanted, dp, r.y, 0, k * E, 1, w.outputs, 0, dp, k * E, False, r.pairs)
        for i in range(wanted):
            out_i, update_i = out[first + i if ends else begin + i], update[i]
            if residual:
                x_i = x[ptr[first + i + 1] - 1 if ends else begin + i]
                for j in range(d):
                    out_i[j] = x_i[j] + update_i[j]
            else:
                for j in range(d):
                    out_i[j] = update_i[j]
        first = last
    hold((memory, rest))
