"""Depthwise causal convolution + SiLU and its gradient as serial loops over vectors of channels.

    p[t] = bias + Σ_k weight[k] x[t - (taps - 1 - k)],      out[t] = p[t] sigmoid(p[t])

in scan order, with nothing before a sequence's first row. Arrays are laid out as in `scan.kernels`: channels in whole
vectors, *_col where they begin. A quad of channels goes through a sequence at a time where there are as many, so that
the processor need not wait for the exponential of one row.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from typing import NamedTuple

import numpy as np
from numba import njit

from gmn_train.model.scan.kernels import row_index
from gmn_train.model.simd.inner import inlined, inner
from gmn_train.model.simd.rooms import clear_room
from gmn_train.model.simd.vector_math import sigmoid
from gmn_train.model.simd.vectors import LANES, QUAD, fill, load, load_quad, store

FLUSH = 64  # steps between moving float32 sums over time into float64


class ConvSums(NamedTuple):
    """Gradients of weight and, in the last row, bias: float32 since the last flush, and float64 totals."""

    recent: np.ndarray  # (taps + 1, channels)
    pending: np.ndarray  # (1,)
    total: np.ndarray  # (taps + 1, channels)


@inner
def make_conv_sums(like, total):
    return ConvSums(clear_room(total.size, like).reshape(total.shape), np.zeros(1, np.int64), total)


def _loops(load, kind):
    """The loops over a sequence for vectors that `load` loads.

    Their names must differ: compiled code that is read from the cache is linked by name, and of two functions of
    one name (and one list of types) either may be taken.
    """

    @njit(inline="always")
    def convolved(x, x_col, weight, bias, lo, hi, i, reverse, c):
        taps, channels = weight.shape
        p = load(bias, c)
        for back in range(min(taps, i + 1)):
            row = row_index(lo, hi, i - back, reverse)
            p = p + load(weight, (taps - 1 - back) * channels + c) * load(x, row * x.shape[1] + x_col + c)
        return p

    def outputs(x, x_col, weight, bias, lo, hi, reverse, skip, c, out):
        for i in range(skip, hi - lo):
            p = convolved(x, x_col, weight, bias, lo, hi, i, reverse, c)
            store(out, row_index(lo, hi, i, reverse) * out.shape[1] + c, p * sigmoid(p))

    def gradients(x, x_col, weight, bias, lo, hi, reverse, skip, c, grad_out, grad_x, grad_col, recent):
        taps, channels = weight.shape
        for i in range(skip, hi - lo):
            p = convolved(x, x_col, weight, bias, lo, hi, i, reverse, c)
            opened, one = sigmoid(p), fill(p, 1.0)
            grad = load(grad_out, row_index(lo, hi, i, reverse) * grad_out.shape[1] + c)
            grad = grad * (opened * (one + p * (one - opened)))  # of p
            store(recent, taps * channels + c, load(recent, taps * channels + c) + grad)
            for back in range(min(taps, i + 1)):
                row = row_index(lo, hi, i - back, reverse)
                at_w, at = (taps - 1 - back) * channels + c, row * grad_x.shape[1] + grad_col + c
                share = load(weight, at_w) * grad
                if back > 0:  # the row's own step came first and set it
                    share = share + load(grad_x, at)
                store(grad_x, at, share)
                store(recent, at_w, load(recent, at_w) + grad * load(x, row * x.shape[1] + x_col + c))

    outputs.__qualname__, gradients.__qualname__ = f"{kind}_outputs", f"{kind}_gradients"
    return inlined(outputs), inlined(gradients)


_vector_outputs, _vector_gradients = _loops(load, "vector")
_quad_outputs, _quad_gradients = _loops(load_quad, "quad")


@inlined
def sequence_conv(x, x_col, weight, bias, lo, hi, reverse, skip, ch_lo, ch_hi, out):
    """One sequence's rows [lo, hi) from step `skip` on; weight is (taps, channels)."""
    quads = ch_lo + (ch_hi - ch_lo) // QUAD * QUAD
    for c in range(ch_lo, quads, QUAD):
        _quad_outputs(x, x_col, weight, bias, lo, hi, reverse, skip, c, out)
    for c in range(quads, ch_hi, LANES):
        _vector_outputs(x, x_col, weight, bias, lo, hi, reverse, skip, c, out)


@inlined
def sequence_conv_gradients(
    x, x_col, weight, bias, lo, hi, reverse, skip, ch_lo, ch_hi, grad_out, grad_x, grad_col, sums
):
    """Set grad_x of rows [lo, hi) and add to the sums. p is computed again from x: cheaper than keeping it.

    The first `skip` steps have no output here; what later steps give to them is added to their grad_x.
    """
    quads = ch_lo + (ch_hi - ch_lo) // QUAD * QUAD
    for c in range(ch_lo, quads, QUAD):
        _quad_gradients(x, x_col, weight, bias, lo, hi, reverse, skip, c, grad_out, grad_x, grad_col, sums.recent)
    for c in range(quads, ch_hi, LANES):
        _vector_gradients(x, x_col, weight, bias, lo, hi, reverse, skip, c, grad_out, grad_x, grad_col, sums.recent)
    sums.pending[0] += hi - lo - skip
    if sums.pending[0] >= FLUSH:
        flush_conv(sums, ch_lo, ch_hi)


@inner
def flush_conv(sums, ch_lo, ch_hi):
    for k in range(sums.total.shape[0]):
        for c in range(ch_lo, ch_hi):
            sums.total[k, c] += sums.recent[k, c]
            sums.recent[k, c] = 0
    sums.pending[0] = 0


@njit(cache=True, nogil=True)
def conv_outputs(x, weight, bias, ptr, reverse, seq_lo, seq_hi, ch_lo, ch_hi, out):
    """Fill `out` (total, channels) for the given sequences and channels."""
    for s in range(seq_lo, seq_hi):
        sequence_conv(x, 0, weight, bias, ptr[s], ptr[s + 1], reverse, 0, ch_lo, ch_hi, out)


@njit(cache=True, nogil=True)
def conv_gradients(x, weight, bias, ptr, reverse, seq_lo, seq_hi, ch_lo, ch_hi, grad_out, grad_x, totals):
    """Fill grad_x, and for these sequences the float64 sums `totals` (taps + 1, channels) of weight and bias."""
    totals[:, ch_lo:ch_hi] = 0
    sums = make_conv_sums(x, totals)
    for s in range(seq_lo, seq_hi):
        sequence_conv_gradients(
            x, 0, weight, bias, ptr[s], ptr[s + 1], reverse, 0, ch_lo, ch_hi, grad_out, grad_x, 0, sums
        )
    flush_conv(sums, ch_lo, ch_hi)
