"""Depthwise causal convolution + SiLU and its gradient as serial loops, channels innermost.

    p[t] = bias + Σ_k weight[k] x[t - (taps - 1 - k)],      out[t] = p[t] sigmoid(p[t])

in scan order, with nothing before a sequence's first row. Flags as in `scan.kernels`.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit

from gmn_train.model.scan.kernels import FLAGS, FLUSH
from gmn_train.model.scan.vector_math import sigmoid


@njit(inline="always")
def _convolve(x, weight, bias, lo, hi, i, reverse, ch_lo, ch_hi, p):
    """Fill p (channels of the range) with the convolution at step i of the sequence [lo, hi)."""
    taps = weight.shape[0]
    p[:] = bias[ch_lo:ch_hi]
    for back in range(min(taps, i + 1)):
        row = hi - 1 - i + back if reverse else lo + i - back
        x_s = x[row, ch_lo:ch_hi]
        w = weight[taps - 1 - back, ch_lo:ch_hi]
        for j in range(ch_hi - ch_lo):
            p[j] += w[j] * x_s[j]


@njit(cache=True, nogil=True, fastmath=FLAGS)
def conv_outputs(x, weight, bias, ptr, reverse, seq_lo, seq_hi, ch_lo, ch_hi, out):
    """Fill `out` (total, channels) for the given sequences and channels; weight is (taps, channels)."""
    p = np.empty(ch_hi - ch_lo, x.dtype)
    for s in range(seq_lo, seq_hi):
        lo, hi = ptr[s], ptr[s + 1]
        for i in range(hi - lo):
            _convolve(x, weight, bias, lo, hi, i, reverse, ch_lo, ch_hi, p)
            out_t = out[hi - 1 - i if reverse else lo + i, ch_lo:ch_hi]
            for j in range(ch_hi - ch_lo):
                out_t[j] = p[j] * sigmoid(p[j])


@njit(cache=True, nogil=True, fastmath=FLAGS)
def conv_gradients(
    x, weight, bias, ptr, reverse, seq_lo, seq_hi, ch_lo, ch_hi, grad_out, grad_x, grad_weight, grad_bias
):
    """Fill grad_x, and for these sequences the float64 sums grad_weight (taps, channels) and grad_bias.

    p is computed again from x: cheaper than keeping it.
    """
    taps, width = weight.shape[0], ch_hi - ch_lo
    one = x.dtype.type(1)
    p = np.empty(width, x.dtype)
    recent = np.zeros((taps + 1, width), x.dtype)  # gradients of weight, then bias, since the last flush
    grad_weight[:, ch_lo:ch_hi] = 0
    grad_bias[ch_lo:ch_hi] = 0
    unflushed = 0
    for s in range(seq_lo, seq_hi):
        lo, hi = ptr[s], ptr[s + 1]
        for i in range(hi - lo):
            _convolve(x, weight, bias, lo, hi, i, reverse, ch_lo, ch_hi, p)
            out_t = grad_out[hi - 1 - i if reverse else lo + i, ch_lo:ch_hi]
            sum_bias = recent[taps]
            for j in range(width):
                open_ = sigmoid(p[j])
                p[j] = out_t[j] * open_ * (one + p[j] * (one - open_))  # now the gradient of p
                sum_bias[j] += p[j]
            for back in range(min(taps, i + 1)):
                row = hi - 1 - i + back if reverse else lo + i - back
                x_s = x[row, ch_lo:ch_hi]
                grad_s = grad_x[row, ch_lo:ch_hi]
                w = weight[taps - 1 - back, ch_lo:ch_hi]
                sum_w = recent[taps - 1 - back]
                if back == 0:  # the row's own step comes first, so this sets it and later steps add
                    for j in range(width):
                        grad_s[j] = w[j] * p[j]
                        sum_w[j] += p[j] * x_s[j]
                else:
                    for j in range(width):
                        grad_s[j] += w[j] * p[j]
                        sum_w[j] += p[j] * x_s[j]
            unflushed += 1
            if unflushed == FLUSH:
                _flush(recent, grad_weight, grad_bias, ch_lo)
                unflushed = 0
    _flush(recent, grad_weight, grad_bias, ch_lo)


@njit(inline="always")
def _flush(recent, grad_weight, grad_bias, ch_lo):
    taps, width = grad_weight.shape[0], recent.shape[1]
    for k in range(taps):
        for j in range(width):
            grad_weight[k, ch_lo + j] += recent[k, j]
    for j in range(width):
        grad_bias[ch_lo + j] += recent[taps, j]
    recent[:] = 0
