"""The gradient of the selective scan; see `kernels` for the recurrence, the layout and the flags."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit

from gmn_train.model.scan.kernels import CHUNK, FLAGS, FLUSH, LANES, LN2, _load_bank, _row_index
from gmn_train.model.scan.vector_math import exp2, sigmoid, softplus


@njit(inline="always")
def _record(row, bank, now, after, b0, b1):
    """One step of two states onto the tape: now = (ā, h before) twice; h goes to the next step's place."""
    for j in range(LANES):
        d = row[j]
        x = row[LANES + j]
        a0 = exp2(d * bank[j])
        a1 = exp2(d * bank[3 * LANES + j])
        now[j] = a0
        now[2 * LANES + j] = a1
        after[LANES + j] = a0 * now[LANES + j] + b0 * x
        after[3 * LANES + j] = a1 * now[3 * LANES + j] + b1 * x


@njit(inline="always")
def _retreat(row, bank, now, b0, b1, c0, c1):
    """One step back of two states; returns this block's share of the gradients of B and C at both.

    row = (Δ, Δu, dy, Σ_n g B, Σ_n g ā h A); bank = (A log2 e, gradient g of h carried back, gradient of A)
    twice.
    """
    zero = row[0] * 0
    gb0, gb1, gc0, gc1 = zero, zero, zero, zero
    for j in range(LANES):
        d = row[j]
        x = row[LANES + j]
        dy = row[2 * LANES + j]
        a0, h0 = now[j], now[LANES + j]
        a1, h1 = now[2 * LANES + j], now[3 * LANES + j]
        g0 = bank[LANES + j] + c0 * dy
        g1 = bank[4 * LANES + j] + c1 * dy
        gc0 += dy * (a0 * h0 + b0 * x)
        gc1 += dy * (a1 * h1 + b1 * x)
        gb0 += g0 * x
        gb1 += g1 * x
        row[3 * LANES + j] += g0 * b0 + g1 * b1
        g0 *= a0
        g1 *= a1
        bank[LANES + j] = g0
        bank[4 * LANES + j] = g1
        g0 *= h0
        g1 *= h1
        row[4 * LANES + j] += g0 * bank[j] + g1 * bank[3 * LANES + j]
        bank[2 * LANES + j] += g0 * d
        bank[5 * LANES + j] += g1 * d
    return gb0, gb1, gc0, gc1


@njit(inline="always")
def _flush(bank, row, grad_A, grad_D, grad_bias):
    """Move the sums over time of the gradients of A, D and bias into their float64 totals."""
    width = grad_D.shape[0]
    for n in range(grad_A.shape[0]):
        for j in range(width):
            grad_A[n, j] += bank[(3 * n + 2) * LANES + j]
        bank[(3 * n + 2) * LANES : (3 * n + 3) * LANES] = 0
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
    tape = np.zeros((CHUNK + 1) * states * 2 * LANES, u.dtype)
    bank = np.zeros(states * 3 * LANES, u.dtype)
    row = np.zeros(7 * LANES, u.dtype)  # the fields of _retreat, then the gradients of D and bias
    deltas = np.zeros(CHUNK * LANES, u.dtype)
    one, ln2 = u.dtype.type(1), u.dtype.type(LN2)
    for at in range(ch_lo, ch_hi, LANES):
        width = min(LANES, ch_hi - at)
        row[:] = 0
        _load_bank(bank, 3, A2, at, width)
        grad_A[:, at : at + width] = 0
        grad_D[at : at + width] = 0
        grad_bias[at : at + width] = 0
        skip = D[at : at + width]
        shift = bias[at : at + width]
        unflushed = 0
        for s in range(seq_lo, seq_hi):
            lo, hi = ptr[s], ptr[s + 1]
            for n in range(states):
                bank[(3 * n + 1) * LANES : (3 * n + 2) * LANES] = 0
            for chunk in range((hi - lo + CHUNK - 1) // CHUNK - 1, -1, -1):
                first = chunk * CHUNK
                steps = min(CHUNK, hi - lo - first)
                for n in range(states):
                    start = tape[(2 * n + 1) * LANES : (2 * n + 1) * LANES + width]
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
                            row[j] = softplus(dt_t[j] + shift[j])
                    else:
                        row[:width] = dt_t
                    for j in range(width):
                        deltas[i * LANES + j] = row[j]
                        row[LANES + j] = row[j] * u_t[j]
                    for n in range(0, states, 2):
                        now = tape[2 * (i * states + n) * LANES : 2 * (i * states + n + 2) * LANES]
                        after = tape[2 * ((i + 1) * states + n) * LANES : 2 * ((i + 1) * states + n + 2) * LANES]
                        pair = bank[3 * n * LANES : (3 * n + 6) * LANES]
                        _record(row, pair, now, after, BC[t, n], BC[t, n + 1])
                for i in range(steps - 1, -1, -1):
                    t = _row_index(lo, hi, first + i, reverse)
                    u_t = u[t, at : at + width]
                    dt_t = dt[t, at : at + width]
                    out_t = grad_out[t, at : at + width]
                    row[:width] = deltas[i * LANES : i * LANES + width]
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
                    for j in range(width):
                        row[LANES + j] = row[j] * u_t[j]
                        row[5 * LANES + j] += row[2 * LANES + j] * u_t[j]
                    row[3 * LANES : 5 * LANES] = 0
                    for n in range(0, states, 2):
                        now = tape[2 * (i * states + n) * LANES : 2 * (i * states + n + 2) * LANES]
                        pair = bank[3 * n * LANES : (3 * n + 6) * LANES]
                        gb0, gb1, gc0, gc1 = _retreat(
                            row, pair, now, BC[t, n], BC[t, n + 1], BC[t, states + n], BC[t, states + n + 1]
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
