"""The scan of a piece of a sequence: it starts from a state that is given, and its gradient from one given at its end.

States are flat (blocks, states, LANES), as in `kernels`; u, dt, z and what belongs to them are (rows, channels).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from numba import njit

from gmn_train.model.scan.gradient_kernels import flush_sums, make_sums, make_tape, sequence_gradients
from gmn_train.model.scan.kernels import CHUNK, GROUP, row_index, sequence_outputs, step_sizes
from gmn_train.model.simd.rooms import room
from gmn_train.model.simd.vector_math import exp2
from gmn_train.model.simd.vectors import LANES, four_times, load, load_four, load_quad, store


@njit(cache=True, nogil=True)
def piece_outputs(u, dt, A2, BC, D, bias, z, reverse, last_only, keep, kept, h, out):
    """Take h through all rows and fill `out` with the gated outputs; last_only: h alone is wanted, out is one row.

    kept (chunks, blocks, states, LANES) receives, where `keep`, the state before every CHUNK-th step.
    """
    state, deltas, ys = room(A2.size, u), room(CHUNK * GROUP, u), room(CHUNK * GROUP, u)
    for i in range(h.size):
        state[i] = h[i]
    sequence_outputs(
        u, 0, dt, 0, A2, BC, D, bias, z, 0, True, not last_only, 0, u.shape[0], reverse, 0, u.shape[1],
        0 if last_only else -1, False, keep, 0, kept, state, deltas, ys, out, 0,
    )  # fmt: skip
    for i in range(h.size):
        h[i] = state[i]


@njit(cache=True, nogil=True)
def piece_carry(dt, A2, BC, bias, reverse, grad_y, carried):
    """Take `carried`, the gradient of the state after the last row, back to the one before the first.

    grad_y: of the scan's own outputs, before the gate.
    """
    (rows, channels), states = dt.shape, A2.shape[1]
    g, deltas = room(A2.size, dt), room(CHUNK * GROUP, dt)
    for i in range(carried.size):
        g[i] = carried[i]
    for at in range(0, channels, GROUP):
        to = min(at + GROUP, channels)
        for first in range((rows - 1) // CHUNK * CHUNK, -1, -CHUNK):
            steps = min(CHUNK, rows - first)
            step_sizes(dt, 0, bias, True, 0, rows, reverse, first, steps, at, to, deltas)
            for c in range(at, to, LANES):
                for i in range(steps - 1, -1, -1):
                    t = row_index(0, rows, first + i, reverse)
                    delta = four_times(load(deltas, i * GROUP + c - at))
                    dy = four_times(load(grad_y, t * channels + c))
                    for n in range(0, states, 4):
                        place = c * states + n * LANES
                        grad = load_quad(g, place) + load_four(BC, t * BC.shape[1] + states + n) * dy
                        store(g, place, grad * exp2(delta * load_quad(A2, place)))
    for i in range(carried.size):
        carried[i] = g[i]


@njit(cache=True, nogil=True)
def piece_gradients(
    u, dt, A2, BC, D, bias, z, reverse, kept, carried, grad_out, grad_u, grad_dt, grad_BC, grad_z, grad_A, grad_D,
    grad_bias,
):  # fmt: skip
    """Fill the gradients; carried: the gradient of the state after the last row. The last three are float64 zeros."""
    tape, sums = make_tape(D.size, A2.shape[1], u), make_sums(A2, u, grad_A, grad_D, grad_bias)
    flat_BC = grad_BC.reshape(-1)
    for i in range(carried.size):
        tape.carried[i] = carried[i]
    for at in range(0, u.shape[1], GROUP):
        to = min(at + GROUP, u.shape[1])
        sequence_gradients(
            u, 0, dt, 0, A2, BC, D, bias, z, 0, True, True, 0, u.shape[0], reverse, at, to, -1,
            False, False, 0, kept, tape, False, grad_z, 0, grad_out, 0, grad_u, grad_dt, flat_BC, at > 0,
            grad_z, 0, sums,
        )  # fmt: skip
        flush_sums(sums, at, to)
