"""The selective scan as serial loops; `numba_scan` cuts the work into calls of these, tiles scan inside a tile.

Per sequence, with rows t in scan order, h[-1] = 0 and ā = exp(Δ A):

    h[t] = ā[t] h[t-1] + Δ[t] B[t] u[t],      y[t] = Σ_n C[t, n] h[t, n] + D u[t]

and, fused where asked for, Δ = softplus(dt + bias) before and y silu(z) after: each saves two passes over (total,
channels) and a buffer.

Layout. GROUP channels go through a sequence together, CHUNK steps at a time, in three passes over buffers that stay in
the nearest caches: step sizes, states, gates. In the second, LANES channels are a vector, and four states a quad. So
the number of channels must be a multiple of LANES and that of states of four: callers pad. A2, gradients of A and kept
states are (blocks of LANES channels, states, LANES). Arrays are row-major and may hold more columns than the scan's:
*_col says where its channels begin.

A step of LANES channels and one state takes 14 cycles with its share of softplus and gate (AMD EPYC, AVX-512; 10 are
fused multiply-adds, one per cycle). It took 18 with one state at a time or with softplus and gate in the same loop,
because the processor then waits for the chain of one exponential, and with loops over 64 channels left to the compiler.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from numba import njit

from gmn_train.model.simd.inner import inlined
from gmn_train.model.simd.rooms import room
from gmn_train.model.simd.vector_math import exp2, sigmoid, softplus
from gmn_train.model.simd.vectors import (
    LANES,
    fill,
    four_times,
    load,
    load_four,
    load_quad,
    multiply_add,
    store,
    sum_of_four,
)

GROUP = 64  # a quad
CHUNK = 32  # steps between kept states: the tape of one chunk (2 * 32 * 16 * 64 float32) fits the level-2 cache
LN2 = 0.6931471805599453


@njit(inline="always")
def row_index(lo, hi, i, reverse):
    return hi - 1 - i if reverse else lo + i


@njit(inline="always")
def first_output(lo, hi, end):
    """The first step whose output is wanted."""
    return 0 if end < 0 else hi - lo - 1


@inlined
def step_sizes(dt, dt_col, bias, positive, lo, hi, reverse, first, steps, ch_lo, ch_hi, deltas):
    """Δ of `steps` steps from step `first` on into deltas (CHUNK, GROUP)."""
    for i in range(steps):
        at = row_index(lo, hi, first + i, reverse) * dt.shape[1] + dt_col
        if ch_hi - ch_lo == GROUP:
            delta = load_quad(dt, at + ch_lo)
            if positive:
                delta = softplus(delta + load_quad(bias, ch_lo))
            store(deltas, i * GROUP, delta)
        else:
            for c in range(ch_lo, ch_hi, LANES):
                one = load(dt, at + c)
                if positive:
                    one = softplus(one + load(bias, c))
                store(deltas, i * GROUP + c - ch_lo, one)


@inlined
def advance(u, u_col, A2, BC, D, lo, hi, reverse, first, steps, ch_lo, ch_hi, fresh, first_y, deltas, h, ys):
    """Take h (blocks, states, LANES) `steps` steps further; outputs of steps from first_y on into ys (CHUNK, GROUP).

    fresh: h is zero, whatever it holds: the first step needs no decay.
    """
    states = A2.shape[1]
    for c in range(ch_lo, ch_hi, LANES):
        skip, at_h = load(D, c), c * states
        for i in range(steps):
            t = row_index(lo, hi, first + i, reverse)
            at, place = t * BC.shape[1], i * GROUP + c - ch_lo
            u_t, one = load(u, t * u.shape[1] + u_col + c), load(deltas, place)
            delta, x = four_times(one), four_times(one * u_t)
            wanted, total = first + i >= first_y, fill(x, 0.0)
            for n in range(0, states, 4):
                b = load_four(BC, at + n)
                if fresh and i == 0:
                    state = b * x
                else:
                    decay = exp2(delta * load_quad(A2, c * states + n * LANES))
                    state = multiply_add(b, x, decay * load_quad(h, at_h + n * LANES))
                store(h, at_h + n * LANES, state)
                if wanted:
                    total = total + load_four(BC, at + states + n) * state
            if wanted:
                store(ys, place, skip * u_t + sum_of_four(total))


@inlined
def write_outputs(z, z_col, gated, lo, hi, reverse, first, steps, ch_lo, ch_hi, end, ys, out, out_col):
    """Gate ys and write it to `out`."""
    for i in range(max(first_output(lo, hi, end) - first, 0), steps):
        t = row_index(lo, hi, first + i, reverse) if end < 0 else end
        if ch_hi - ch_lo == GROUP:
            value = load_quad(ys, i * GROUP)
            if gated:
                z_t = load_quad(z, t * z.shape[1] + z_col + ch_lo)
                value = value * (z_t * sigmoid(z_t))
            store(out, t * out.shape[1] + out_col + ch_lo, value)
        else:
            for c in range(ch_lo, ch_hi, LANES):
                one = load(ys, i * GROUP + c - ch_lo)
                if gated:
                    z_c = load(z, t * z.shape[1] + z_col + c)
                    one = one * (z_c * sigmoid(z_c))
                store(out, t * out.shape[1] + out_col + c, one)


@inlined
def sequence_outputs(
    u, u_col, dt, dt_col, A2, BC, D, bias, z, z_col, positive, gated, lo, hi, reverse, ch_lo, ch_hi, end,
    fresh, keep, k, kept, h, deltas, ys, out, out_col,
):  # fmt: skip
    """Scan rows [lo, hi), channels [ch_lo, ch_hi).

    end: -1, or the row of `z` and `out` that stands for the last step, the only one whose output is then wanted.
    fresh: from a state of zero; else h (blocks, states, LANES) is what the rows before left there. kept (chunks,
    blocks,
    states, LANES) receives, where `keep`, the state before every CHUNK-th step from k on, the first step's too if it is
    not fresh. deltas and ys are rooms.
    """
    states, channels = A2.shape[1], D.size
    for at in range(ch_lo, ch_hi, GROUP):
        to = min(at + GROUP, ch_hi)
        for first in range(0, hi - lo, CHUNK):
            if keep and (first > 0 or not fresh):
                row = k + first // CHUNK - (1 if fresh else 0)
                for g in range(at * states, to * states, LANES):
                    store(kept, row * channels * states + g, load(h, g))
            steps = min(CHUNK, hi - lo - first)
            step_sizes(dt, dt_col, bias, positive, lo, hi, reverse, first, steps, at, to, deltas)
            advance(
                u, u_col, A2, BC, D, lo, hi, reverse, first, steps, at, to, fresh and first == 0,
                first_output(lo, hi, end), deltas, h, ys,
            )  # fmt: skip
            write_outputs(z, z_col, gated, lo, hi, reverse, first, steps, at, to, end, ys, out, out_col)


@njit(cache=True, nogil=True)
def scan_outputs(
    u, dt, A2, BC, D, bias, z, positive, gated, ptr, reverse, seq_lo, seq_hi, ch_lo, ch_hi, keep, kept_ptr, kept, out
):
    """Fill `out` (total, channels) for sequences [seq_lo, seq_hi) and channels [ch_lo, ch_hi).

    A2 is A log2 e; BC (total, 2 states) is B beside C. `positive`: Δ = softplus(dt + bias), else dt is Δ; `gated`:
    multiply by silu(z). With `keep`, the state before every CHUNK-th step is written to `kept` for the backward pass, a
    sequence's first at kept_ptr[s].
    """
    h, deltas, ys = room(A2.size, u), room(CHUNK * GROUP, u), room(CHUNK * GROUP, u)
    for s in range(seq_lo, seq_hi):
        sequence_outputs(
            u, 0, dt, 0, A2, BC, D, bias, z, 0, positive, gated, ptr[s], ptr[s + 1], reverse, ch_lo, ch_hi, -1,
            True, keep, kept_ptr[s], kept, h, deltas, ys, out, 0,
        )  # fmt: skip
