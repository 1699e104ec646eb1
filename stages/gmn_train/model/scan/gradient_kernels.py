"""The gradient of the selective scan; see `kernels` for the recurrence and the layout.

The backward sweep runs over chunks of CHUNK steps from the last to the first. It starts a chunk from the state that was
kept there, computes the chunk's states and decays again onto the tape, and reads the tape backwards. So memory does not
grow with length times states, and sequences up to CHUNK steps keep nothing at all. GROUP channels go through a chunk
together, so that sums over channels (the gradients of B and C) are taken in registers and leave them once per step and
state. A step of LANES channels and one state takes 30 cycles, 40 before (see `kernels`).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from typing import NamedTuple

import numpy as np
from numba import njit

from gmn_train.model.scan.kernels import CHUNK, GROUP, LN2, first_output, row_index, step_sizes
from gmn_train.model.simd.inner import inlined, inner
from gmn_train.model.simd.rooms import clear_room, room
from gmn_train.model.simd.vector_math import exp2, sigmoid
from gmn_train.model.simd.vectors import (
    LANES,
    fill,
    four_times,
    load,
    load_four,
    load_quad,
    multiply_add,
    spread,
    store,
    store_totals,
    sum_of_four,
)

FLUSH = 64  # steps between moving float32 sums over time into float64: long sums keep their precision


class Tape(NamedTuple):
    """Rooms for one chunk of one group of channels, flat. Numba takes it as it is."""

    decays: np.ndarray  # (CHUNK, blocks, states, LANES)
    states: np.ndarray  # (CHUNK + 1, blocks, states, LANES): the state before each step, and after the last
    carried: np.ndarray  # (all blocks, states, LANES): gradient of the state, carried back
    deltas: np.ndarray  # (CHUNK, GROUP), like those that follow
    ys: np.ndarray
    grad_ys: np.ndarray  # of the scan's own output, before the gate
    to_x: np.ndarray  # Σ_n g B: the gradient of Δ u
    to_delta: np.ndarray  # Σ_n g ā h A log2 e
    eight: np.ndarray  # (8,)


@inner
def make_tape(channels, states, like):
    return Tape(
        room(CHUNK * states * GROUP, like),
        room((CHUNK + 1) * states * GROUP, like),
        room(states * channels, like),
        room(CHUNK * GROUP, like),
        room(CHUNK * GROUP, like),
        room(CHUNK * GROUP, like),
        room(CHUNK * GROUP, like),
        room(CHUNK * GROUP, like),
        room(8, like),
    )


class Sums(NamedTuple):
    """Gradients that are sums over time: float32 since the last flush, and their float64 totals."""

    recent_A: np.ndarray  # noqa: N815 - (blocks, states, LANES)
    recent_D: np.ndarray  # noqa: N815 - (channels,)
    recent_bias: np.ndarray  # (channels,)
    pending: np.ndarray  # (1,) steps since the last flush
    A: np.ndarray
    D: np.ndarray
    bias: np.ndarray


@inlined
def record(u, u_col, A2, BC, D, lo, hi, reverse, first, steps, ch_lo, ch_hi, fresh, first_y, tape):
    """Fill the tape of `steps` steps from step `first` on, from the state in tape.states[0]; tape.ys from step first_y.

    fresh: that state is zero, whatever the tape holds: the first step has no decay.
    """
    states = A2.shape[1]
    step = GROUP * states
    for c in range(ch_lo, ch_hi, LANES):
        skip = load(D, c)
        for i in range(steps):
            t = row_index(lo, hi, first + i, reverse)
            place = i * GROUP + c - ch_lo
            u_t, one = load(u, t * u.shape[1] + u_col + c), load(tape.deltas, place)
            delta, x = four_times(one), four_times(one * u_t)
            at, now = t * BC.shape[1], i * step + (c - ch_lo) * states
            wanted, total = first + i >= first_y, fill(x, 0.0)
            for n in range(0, states, 4):
                b = load_four(BC, at + n)
                if fresh and i == 0:
                    state = b * x
                else:
                    decay = exp2(delta * load_quad(A2, c * states + n * LANES))
                    state = multiply_add(b, x, decay * load_quad(tape.states, now + n * LANES))
                    store(tape.decays, now + n * LANES, decay)
                store(tape.states, now + step + n * LANES, state)
                if wanted:
                    total = total + load_four(BC, at + states + n) * state
            if wanted:
                store(tape.ys, place, skip * u_t + sum_of_four(total))


@njit(inline="always")
def _gate_gradient(grad, y, z):
    """Gradients of y and z, and the gated y."""
    one = fill(z, 1.0)
    opened = sigmoid(z)
    gate = z * opened
    return grad * gate, grad * y * (opened * (one + z * (one - opened))), y * gate


@inlined
def gate_gradients(
    z, z_col, gated, lo, hi, reverse, first, steps, ch_lo, ch_hi, end, tape, grad_out, out_col, grad_z, grad_z_col,
    want_out, out, y_col,
):  # fmt: skip
    """Fill tape.grad_ys, the gradient of z, and the gated output again where `want_out`."""
    for i in range(steps):
        t = row_index(lo, hi, first + i, reverse) if end < 0 else end
        for c in range(ch_lo, ch_hi, LANES):
            place = i * GROUP + c - ch_lo
            if first + i < first_output(lo, hi, end):
                store(tape.grad_ys, place, spread(tape.ys.dtype.type(0)))
                continue
            grad = load(grad_out, t * grad_out.shape[1] + out_col + c)
            if gated:
                grad, to_z, value = _gate_gradient(grad, load(tape.ys, place), load(z, t * z.shape[1] + z_col + c))
                store(grad_z, t * grad_z.shape[1] + grad_z_col + c, to_z)
                if want_out:
                    store(out, t * out.shape[1] + y_col + c, value)
            store(tape.grad_ys, place, grad)


@inlined
def retreat(
    u, u_col, A2, BC, lo, hi, reverse, first, steps, ch_lo, ch_hi, fresh, first_y, tape, recent_A, grad_BC, add
):
    """Back through `steps` steps from step `first` on: tape.to_x, tape.to_delta, tape.carried, and sums for A, B and C.

    fresh: the state before them is zero, so there is nothing to decay; outputs have a gradient from step first_y on.
    """
    states = A2.shape[1]
    step = GROUP * states
    for i in range(steps - 1, -1, -1):
        t = row_index(lo, hi, first + i, reverse)
        at, begins, wanted = t * BC.shape[1], fresh and i == 0, first + i >= first_y
        for n in range(0, states, 4):
            b, c = load_four(BC, at + n), load_four(BC, at + states + n)
            through_B = fill(b, 0.0)
            through_C = fill(b, 0.0)
            for g in range(0, ch_hi - ch_lo, LANES):
                place = g * states + n * LANES
                now, at_A = i * step + place, ch_lo * states + place
                delta = load(tape.deltas, i * GROUP + g)
                x = four_times(delta * load(u, t * u.shape[1] + u_col + ch_lo + g))
                grad = load_quad(tape.carried, at_A)
                if wanted:
                    dy = four_times(load(tape.grad_ys, i * GROUP + g))
                    through_C = through_C + dy * load_quad(tape.states, now + step)
                    grad = grad + c * dy
                through_B = through_B + grad * x
                to_x, to_delta = sum_of_four(grad * b), fill(delta, 0.0)
                if not begins:
                    grad = grad * load_quad(tape.decays, now)
                    store(tape.carried, at_A, grad)
                    grad = grad * load_quad(tape.states, now)
                    to_delta = sum_of_four(grad * load_quad(A2, at_A))
                    store(recent_A, at_A, load_quad(recent_A, at_A) + grad * four_times(delta))
                if n > 0:
                    to_x = to_x + load(tape.to_x, i * GROUP + g)
                    to_delta = to_delta + load(tape.to_delta, i * GROUP + g)
                store(tape.to_x, i * GROUP + g, to_x)
                store(tape.to_delta, i * GROUP + g, to_delta)
            if add:
                store_totals(tape.eight, 0, through_B)
                store_totals(tape.eight, 4, through_C)
                for k in range(4):
                    grad_BC[at + n + k] += tape.eight[k]
                    grad_BC[at + states + n + k] += tape.eight[4 + k]
            else:
                store_totals(grad_BC, at + n, through_B)
                store_totals(grad_BC, at + states + n, through_C)


@inlined
def input_gradients(
    u, u_col, dt, dt_col, D, bias, positive, lo, hi, reverse, first, steps, ch_lo, ch_hi, tape, sums, grad_u, grad_dt
):
    """Gradients of u and dt of a chunk, and those of D and bias added up."""
    for i in range(steps - 1, -1, -1):
        t = row_index(lo, hi, first + i, reverse)
        for c in range(ch_lo, ch_hi, LANES):
            place = i * GROUP + c - ch_lo
            u_t, dy, to_x = load(u, t * u.shape[1] + u_col + c), load(tape.grad_ys, place), load(tape.to_x, place)
            store(grad_u, t * grad_u.shape[1] + c, load(tape.deltas, place) * to_x + load(D, c) * dy)
            grad = u_t * to_x + fill(u_t, LN2) * load(tape.to_delta, place)
            if positive:
                grad = grad * sigmoid(load(dt, t * dt.shape[1] + dt_col + c) + load(bias, c))
                store(sums.recent_bias, c, load(sums.recent_bias, c) + grad)
            store(grad_dt, t * grad_dt.shape[1] + c, grad)
            store(sums.recent_D, c, load(sums.recent_D, c) + dy * u_t)


@inlined
def sequence_gradients(
    u, u_col, dt, dt_col, A2, BC, D, bias, z, z_col, positive, gated, lo, hi, reverse, ch_lo, ch_hi, end,
    fresh, ended, k, kept, tape, want_out, out, y_col, grad_out, out_col, grad_u, grad_dt, grad_BC, add, grad_z,
    grad_z_col, sums,
):  # fmt: skip
    """Gradients of rows [lo, hi) and at most GROUP channels [ch_lo, ch_hi); chunk states from k of `kept` on.

    grad_u, grad_dt and grad_z are set; grad_BC (flat) is set, or added to with `add`; `sums` are added to. end: as in
    `sequence_outputs`, the row of z, grad_out, grad_z and out; fresh and k as there. ended: no rows come after, so the
    gradient carried back begins with zero. want_out: also write the forward pass's result again.
    """
    states, channels = A2.shape[1], D.size
    zero = spread(u.dtype.type(0))
    size = (ch_hi - ch_lo) * states
    if ended:
        for g in range(ch_lo * states, ch_hi * states, LANES):
            store(tape.carried, g, zero)
    for chunk in range((hi - lo + CHUNK - 1) // CHUNK - 1, -1, -1):
        first = chunk * CHUNK
        steps = min(CHUNK, hi - lo - first)
        starts, first_y = fresh and chunk == 0, first_output(lo, hi, end)
        if not starts:
            row = k + chunk - (1 if fresh else 0)
            for g in range(0, size, LANES):
                store(tape.states, g, load(kept, (row * channels + ch_lo) * states + g))
        step_sizes(dt, dt_col, bias, positive, lo, hi, reverse, first, steps, ch_lo, ch_hi, tape.deltas)
        record(u, u_col, A2, BC, D, lo, hi, reverse, first, steps, ch_lo, ch_hi, starts, first_y, tape)
        gate_gradients(
            z, z_col, gated, lo, hi, reverse, first, steps, ch_lo, ch_hi, end, tape, grad_out, out_col,
            grad_z, grad_z_col, want_out, out, y_col,
        )  # fmt: skip
        retreat(
            u, u_col, A2, BC, lo, hi, reverse, first, steps, ch_lo, ch_hi, starts, first_y, tape, sums.recent_A,
            grad_BC, add,
        )  # fmt: skip
        input_gradients(
            u, u_col, dt, dt_col, D, bias, positive, lo, hi, reverse, first, steps, ch_lo, ch_hi, tape, sums,
            grad_u, grad_dt,
        )  # fmt: skip
        sums.pending[0] += steps
        if sums.pending[0] >= FLUSH:
            flush_sums(sums, ch_lo, ch_hi)


@inner
def flush_sums(sums, ch_lo, ch_hi):
    """Move sums over time into their float64 totals."""
    for c in range(ch_lo // LANES, ch_hi // LANES):
        for n in range(sums.A.shape[1]):
            for j in range(LANES):
                sums.A[c, n, j] += sums.recent_A[c, n, j]
                sums.recent_A[c, n, j] = 0
    for c in range(ch_lo, ch_hi):
        sums.D[c] += sums.recent_D[c]
        sums.bias[c] += sums.recent_bias[c]
        sums.recent_D[c] = 0
        sums.recent_bias[c] = 0
    sums.pending[0] = 0


@inner
def make_sums(A2, like, grad_A, grad_D, grad_bias):
    """Sums from zero, with the given float64 totals."""
    recent_A = clear_room(A2.size, like).reshape(A2.shape)
    recent_D, recent_bias = clear_room(grad_D.size, like), clear_room(grad_D.size, like)
    return Sums(recent_A, recent_D, recent_bias, np.zeros(1, np.int64), grad_A, grad_D, grad_bias)


@njit(cache=True, nogil=True)
def scan_gradients(
    u, dt, A2, BC, D, bias, z, positive, gated, ptr, reverse, seq_lo, seq_hi, ch_lo, ch_hi, kept_ptr, kept,
    grad_out, grad_u, grad_dt, grad_BC, grad_z, grad_A, grad_D, grad_bias,
):  # fmt: skip
    """Fill the gradients of sequences [seq_lo, seq_hi) and channels [ch_lo, ch_hi).

    grad_BC (total, 2 states) receives the sum over these channels only; grad_A (blocks, states, LANES), grad_D and
    grad_bias (channels,), all float64, the sum over these sequences only. All are overwritten within the
    range.
    """
    tape, sums = make_tape(D.size, A2.shape[1], u), make_sums(A2, u, grad_A, grad_D, grad_bias)
    flat_BC = grad_BC.reshape(-1)
    grad_A[ch_lo // LANES : ch_hi // LANES] = 0
    grad_D[ch_lo:ch_hi] = 0
    grad_bias[ch_lo:ch_hi] = 0
    for at in range(ch_lo, ch_hi, GROUP):
        to = min(at + GROUP, ch_hi)
        for s in range(seq_lo, seq_hi):
            sequence_gradients(
                u, 0, dt, 0, A2, BC, D, bias, z, 0, positive, gated, ptr[s], ptr[s + 1], reverse, at, to, -1,
                True, True, kept_ptr[s], kept, tape, False, grad_z, 0, grad_out, 0, grad_u, grad_dt, flat_BC, at >
                ch_lo,
                grad_z, 0, sums,
            )  # fmt: skip
        flush_sums(sums, at, to)
