"""The gradient of the selective scan; see `kernels` for the recurrence, the layout and the flags."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit

from gmn_train.model.scan.kernels import (
    CHUNK,
    F1,
    F2,
    F3,
    F4,
    F5,
    F6,
    F7,
    FLAGS,
    FLUSH,
    LANES,
    LN2,
    _load_bank,
    _row_index,
)
from gmn_train.model.scan.vector_math import exp2, sigmoid, softplus


@njit(inline="always")
def _record(row, bank, at, tape, now, b0, b1):
    """One step of two states: ā and the h before the step onto the tape, (ā, h) twice from `now`."""
    for j in range(F1):
        d = row[j]
        x = row[F1 + j]
        a0 = exp2(d * bank[at + j])
        a1 = exp2(d * bank[at + F4 + j])
        h0 = bank[at + F1 + j]
        h1 = bank[at + F5 + j]
        tape[now + j] = a0
        tape[now + F1 + j] = h0
        tape[now + F2 + j] = a1
        tape[now + F3 + j] = h1
        bank[at + F1 + j] = a0 * h0 + b0 * x
        bank[at + F5 + j] = a1 * h1 + b1 * x


@njit(inline="always")
def _retreat(row, bank, at, tape, now, b0, b1, c0, c1):
    """One step back of two states; returns this block's share of the gradients of B and C at both.

    row = (Δ, Δu, dy, Σ_n g B, Σ_n g ā h A); bank from `at` = (A log2 e, h, gradient g of h carried back,
    gradient of A) twice.
    """
    zero = row[0] * 0
    gb0, gb1, gc0, gc1 = zero, zero, zero, zero
    for j in range(F1):
        d = row[j]
        x = row[F1 + j]
        dy = row[F2 + j]
        a0, h0 = tape[now + j], tape[now + F1 + j]
        a1, h1 = tape[now + F2 + j], tape[now + F3 + j]
        g0 = bank[at + F2 + j] + c0 * dy
        g1 = bank[at + F6 + j] + c1 * dy
        gc0 += dy * (a0 * h0 + b0 * x)
        gc1 += dy * (a1 * h1 + b1 * x)
        gb0 += g0 * x
        gb1 += g1 * x
        row[F3 + j] += g0 * b0 + g1 * b1
        g0 *= a0
        g1 *= a1
        bank[at + F2 + j] = g0
        bank[at + F6 + j] = g1
        g0 *= h0
        g1 *= h1
        row[F4 + j] += g0 * bank[at + j] + g1 * bank[at + F4 + j]
        bank[at + F3 + j] += g0 * d
        bank[at + F7 + j] += g1 * d
    return gb0, gb1, gc0, gc1


@njit(inline="always")
def _flush(bank, row, grad_A, grad_D, grad_bias):
    """Move the sums over time of the gradients of A, D and bias into their float64 totals."""
    width = grad_D.shape[0]
    for n in range(grad_A.shape[0]):
        for j in range(width):
            grad_A[n, j] += bank[(4 * n + 3) * LANES + j]
        bank[(4 * n + 3) * LANES : (4 * n + 4) * LANES] = 0
    for j in range(width):
        grad_D[j] += row[5 * LANES + j]
        grad_bias[j] += row[6 * LANES + j]
    row[5 * LANES : 7 * LANES] = 0


@njit(cache=True, nogil=True, fastmath=FLAGS)
def scan_gradients(
    u, dt, A2, BC, D, bias, z, positive, gated, ptr, reverse, seq_lo, seq_hi, ch_lo, ch_hi, kept_ptr, kept, y,
    grad_out, grad_u, grad_dt, grad_BC, grad_z, grad_A, grad_D, grad_bias,
):  # fmt: skip
    """Fill the gradients of sequences [seq_lo, seq_hi) and channels [ch_lo, ch_hi).

    grad_BC (total, 2 states) receives the sum over these channels only; grad_A (states, channels), grad_D and
    grad_bias (channels,), all float64, the sum over these sequences only. All are overwritten within the
    range.
    """
    states = A2.shape[0]
    tape = np.zeros(CHUNK * states * 2 * LANES, u.dtype)
    bank = np.zeros(states * 4 * LANES, u.dtype)
    row = np.zeros(7 * LANES, u.dtype)  # the fields of _retreat, then the gradients of D and bias
    deltas = np.zeros(CHUNK * LANES, u.dtype)
    one, ln2 = u.dtype.type(1), u.dtype.type(LN2)
    for at in range(ch_lo, ch_hi, LANES):
        width = min(LANES, ch_hi - at)
        row[:] = 0
        _load_bank(bank, 4, A2, at, width)
        grad_A[:, at : at + width] = 0
        grad_D[at : at + width] = 0
        grad_bias[at : at + width] = 0
        skip = D[at : at + width]
        shift = bias[at : at + width]
        unflushed = 0
        for s in range(seq_lo, seq_hi):
            lo, hi = ptr[s], ptr[s + 1]
            for n in range(states):
                bank[(4 * n + 2) * LANES : (4 * n + 3) * LANES] = 0
            for chunk in range((hi - lo + CHUNK - 1) // CHUNK - 1, -1, -1):
                first = chunk * CHUNK
                steps = min(CHUNK, hi - lo - first)
                for n in range(states):
                    start = bank[(4 * n + 1) * LANES : (4 * n + 1) * LANES + width]
                    if chunk == 0:
                        start[:] = 0
                    else:
                        start[:] = kept[kept_ptr[s] + chunk - 1, n, at : at + width]
                for i in range(steps):
                    t = _row_index(lo, hi, first + i, reverse)
                    u_t = u[t, at : at + width]
                    dt_t = dt[t, at : at + width]
                    if positive:
                        for j in range(width):
                            d = softplus(dt_t[j] + shift[j])
                            deltas[i * LANES + j] = d
                            row[j] = d
                            row[LANES + j] = d * u_t[j]
                    else:
                        for j in range(width):
                            deltas[i * LANES + j] = dt_t[j]
                            row[j] = dt_t[j]
                            row[LANES + j] = dt_t[j] * u_t[j]
                    for n in range(0, states, 2):
                        now = np.uint64(2 * (i * states + n) * LANES)
                        at_n = np.uint64(4 * n * LANES)
                        _record(row, bank, at_n, tape, now, BC[t, n], BC[t, n + 1])
                for i in range(steps - 1, -1, -1):
                    t = _row_index(lo, hi, first + i, reverse)
                    u_t = u[t, at : at + width]
                    dt_t = dt[t, at : at + width]
                    out_t = grad_out[t, at : at + width]
                    if gated:
                        y_t = y[t, at : at + width]
                        z_t = z[t, at : at + width]
                        grad_z_t = grad_z[t, at : at + width]
                        for j in range(width):
                            open_ = sigmoid(z_t[j])
                            row[2 * LANES + j] = out_t[j] * z_t[j] * open_
                            grad_z_t[j] = out_t[j] * y_t[j] * open_ * (one + z_t[j] * (one - open_))
                    else:
                        row[2 * LANES : 2 * LANES + width] = out_t
                    delta_t = deltas[i * LANES : i * LANES + width]
                    for j in range(width):
                        row[j] = delta_t[j]
                        row[LANES + j] = delta_t[j] * u_t[j]
                        row[3 * LANES + j] = 0
                        row[4 * LANES + j] = 0
                        row[5 * LANES + j] += row[2 * LANES + j] * u_t[j]
                    for n in range(0, states, 2):
                        now = np.uint64(2 * (i * states + n) * LANES)
                        at_n = np.uint64(4 * n * LANES)
                        gb0, gb1, gc0, gc1 = _retreat(
                            row, bank, at_n, tape, now, BC[t, n], BC[t, n + 1], BC[t, states + n], BC[t, states + n + 1]
                        )
                        if at > ch_lo:
                            gb0 += grad_BC[t, n]
                            gb1 += grad_BC[t, n + 1]
                            gc0 += grad_BC[t, states + n]
                            gc1 += grad_BC[t, states + n + 1]
                        grad_BC[t, n] = gb0
                        grad_BC[t, n + 1] = gb1
                        grad_BC[t, states + n] = gc0
                        grad_BC[t, states + n + 1] = gc1
                    grad_u_t = grad_u[t, at : at + width]
                    grad_dt_t = grad_dt[t, at : at + width]
                    for j in range(width):
                        through_b = row[3 * LANES + j]
                        grad_u_t[j] = row[j] * through_b + skip[j] * row[2 * LANES + j]
                        grad_dt_t[j] = u_t[j] * through_b + ln2 * row[4 * LANES + j]
                    if positive:
                        for j in range(width):
                            grad = grad_dt_t[j] * sigmoid(dt_t[j] + shift[j])
                            grad_dt_t[j] = grad
                            row[6 * LANES + j] += grad
                unflushed += steps
                if unflushed >= FLUSH:
                    _flush(
                        bank,
                        row,
                        grad_A[:, at : at + width],
                        grad_D[at : at + width],
                        grad_bias[at : at + width],
                    )
                    unflushed = 0
        _flush(bank, row, grad_A[:, at : at + width], grad_D[at : at + width], grad_bias[at : at + width])
