"""The selective scan and its gradient as serial loops; `numba_scan` cuts the work into calls of these.

Per sequence, with rows t in scan order, h[-1] = 0 and ā = exp(Δ A):

    h[t] = ā[t] h[t-1] + Δ[t] B[t] u[t],      y[t] = Σ_n C[t, n] h[t, n] + D u[t]

and, fused where asked for, Δ = softplus(dt + bias) before and y silu(z) after: each saves two passes over
(total, channels) and a buffer, and costs here about one state's work.

Layout. Channels are the inner loop, in blocks of LANES, two states at a time: exactly that vectorises
(512-bit fused multiply-adds on AVX-512). Everything a block needs lies in three flat buffers whose fields
stand at constant offsets: `row` (per channel), `bank` (per state and channel) and `tape` (per step, state and
channel). With one array per field the compiler guards each inner loop with some sixty overlap tests, which
took half of the time; with three buffers it needs three. The last block is padded with zeros, so the inner
trip count is a constant.

The backward sweep runs over chunks of CHUNK steps from the last to the first. It starts a chunk from the
state that the forward pass kept there, recomputes the chunk's states and decays onto the tape, and reads the
tape backwards. So memory does not grow with length times states, and sequences up to CHUNK steps keep nothing
at all.

Flags: contraction for fused multiply-adds and reassociation for the sums over channels. Both act when
compiling, so the bits of a result depend on neither threads nor runs.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit

from gmn_train.model.scan.vector_math import exp2, sigmoid, softplus

LANES = 64  # 32 took 1.5x as long in the backward pass, 128 wastes half at 64 channels
CHUNK = 32  # the tape of one chunk (2 * 32 * 16 * 64 float32) fits the level-2 cache
FLUSH = 64  # steps between moving float32 sums over time into float64: long sums keep their precision
LN2 = 0.6931471805599453
# Offsets of a block's fields. Unsigned, or each access would test for an index counted from the end.
F1, F2, F3, F4, F5, F6, F7 = (np.uint64(k * LANES) for k in range(1, 8))
FLAGS = {"contract", "reassoc", "nsz", "arcp"}


@njit(inline="always")
def _row_index(lo, hi, i, reverse):
    return hi - 1 - i if reverse else lo + i


@njit(inline="always")
def _load_bank(bank, fields, A2, at, width):
    """Clear the bank and put each state's A log2 e into its first field."""
    bank[:] = 0
    for n in range(A2.shape[0]):
        bank[fields * n * LANES : fields * n * LANES + width] = A2[n, at : at + width]


@njit(inline="always")
def _advance(row, bank, at, b0, b1, c0, c1):
    """One step of two states: row = (Δ, Δu, y), bank from `at` = (A log2 e, h) twice."""
    for j in range(F1):
        d = row[j]
        x = row[F1 + j]
        h0 = exp2(d * bank[at + j]) * bank[at + F1 + j] + b0 * x
        h1 = exp2(d * bank[at + F2 + j]) * bank[at + F3 + j] + b1 * x
        bank[at + F1 + j] = h0
        bank[at + F3 + j] = h1
        row[F2 + j] += c0 * h0 + c1 * h1


@njit(cache=True, nogil=True, fastmath=FLAGS)
def scan_outputs(
    u,
    dt,
    A2,
    BC,
    D,
    bias,
    z,
    positive,
    gated,
    ptr,
    reverse,
    seq_lo,
    seq_hi,
    ch_lo,
    ch_hi,
    keep,
    kept_ptr,
    kept,
    y,
    out,
):
    """Fill `out` (total, channels) for sequences [seq_lo, seq_hi) and channels [ch_lo, ch_hi).

    A2 (states, channels) is A log2 e, transposed; BC (total, 2 states) is B beside C. `positive`: Δ =
    softplus(dt + bias), else dt is Δ; `gated`: multiply by silu(z). With `keep`, what the backward pass needs
    is written: y before the gate, and to `kept` (chunks, states, channels) the state before every CHUNK-th
    step, a sequence's first at kept_ptr[s].
    """
    states = A2.shape[0]
    bank = np.zeros(states * 2 * LANES, u.dtype)
    row = np.zeros(3 * LANES, u.dtype)
    for at in range(ch_lo, ch_hi, LANES):
        width = min(LANES, ch_hi - at)
        row[:] = 0
        _load_bank(bank, 2, A2, at, width)
        skip = D[at : at + width]
        shift = bias[at : at + width]
        for s in range(seq_lo, seq_hi):
            lo, hi = ptr[s], ptr[s + 1]
            for n in range(states):
                bank[(2 * n + 1) * LANES : (2 * n + 2) * LANES] = 0
            for i in range(hi - lo):
                if keep and i > 0 and i % CHUNK == 0:
                    k = kept_ptr[s] + i // CHUNK - 1
                    for n in range(states):
                        kept[k, n, at : at + width] = bank[(2 * n + 1) * LANES : (2 * n + 1) * LANES + width]
                t = _row_index(lo, hi, i, reverse)
                u_t = u[t, at : at + width]
                dt_t = dt[t, at : at + width]
                if positive:
                    for j in range(width):
                        d = softplus(dt_t[j] + shift[j])
                        row[j] = d
                        row[LANES + j] = d * u_t[j]
                        row[2 * LANES + j] = skip[j] * u_t[j]
                else:
                    for j in range(width):
                        row[j] = dt_t[j]
                        row[LANES + j] = dt_t[j] * u_t[j]
                        row[2 * LANES + j] = skip[j] * u_t[j]
                for n in range(0, states, 2):
                    _advance(
                        row,
                        bank,
                        np.uint64(2 * n * LANES),
                        BC[t, n],
                        BC[t, n + 1],
                        BC[t, states + n],
                        BC[t, states + n + 1],
                    )
                out_t = out[t, at : at + width]
                if gated:
                    if keep:
                        y[t, at : at + width] = row[2 * LANES : 2 * LANES + width]
                    z_t = z[t, at : at + width]
                    for j in range(width):
                        out_t[j] = row[2 * LANES + j] * z_t[j] * sigmoid(z_t[j])
                else:
                    out_t[:] = row[2 * LANES : 2 * LANES + width]
