"""What ends a node layer, in one pass over float32 rows: the norm's scaling, the activation and dropout.

A row's mask is drawn from (key, row), eight bits per entry. It costs no memory and is drawn again on the way back. The
last vector of a row overlaps the one before where the width is no multiple of LANES, which must be at least LANES.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import child_key
from gmn_train.model.simd.inner import inner
from gmn_train.model.simd.vector_math import gelu, gelu_slope
from gmn_train.model.simd.vectors import LANES, keep_above, keep_drawn, load, relu, spread, store

NONE, RELU, GELU = 0, 1, 2


@inner
def draw_bytes(key, row, draws):
    """Fill draws, 64 bits at a time."""
    row_key = child_key(key, np.uint64(row))
    for i in range(draws.size):
        draws[i] = child_key(row_key, np.uint64(i))


@njit(cache=True, nogil=True)
def finish_rows(x, factor, shift, activation, key, threshold, first, last, out):
    """out = dropout(activation(x * factor + shift)), by column, for rows first..last-1."""
    d = x.shape[1]
    draws = np.empty(d // 8 + 1, np.uint64)
    drawn = draws.view(np.uint8)
    scale = spread(np.float32(256.0 / (256.0 - threshold)))
    for i in range(first, last):
        if threshold > 0:
            draw_bytes(key, i, draws)
        for c in range(0, d, LANES):
            j = min(c, d - LANES)
            z = load(x, i * d + j) * load(factor, j) + load(shift, j)
            if activation == RELU:
                z = relu(z)
            elif activation == GELU:
                z = gelu(z)
            if threshold > 0:
                z = keep_drawn(drawn, j, threshold, z * scale)
            store(out, i * d + j, z)


@njit(cache=True, nogil=True)
def finish_gradients(x, factor, shift, activation, key, threshold, grad, mean, scale, first, last, out, total):
    """out = the gradient of x * factor + shift; total (2, d) += its sums times the normalised x, and its sums."""
    d = x.shape[1]
    draws = np.empty(d // 8 + 1, np.uint64)
    drawn = draws.view(np.uint8)
    more = spread(np.float32(256.0 / (256.0 - threshold)))
    along, plain = total[0], total[1]
    for i in range(first, last):
        if threshold > 0:
            draw_bytes(key, i, draws)
        for c in range(0, d, LANES):
            j = min(c, d - LANES)
            g = load(grad, i * d + j)
            if threshold > 0:
                g = keep_drawn(drawn, j, threshold, g * more)
            if activation != NONE:
                z = load(x, i * d + j) * load(factor, j) + load(shift, j)
                g = keep_above(z, g) if activation == RELU else g * gelu_slope(z)
            store(out, i * d + j, g)
        row, out_i = x[i], out[i]
        for j in range(d):
            along[j] += out_i[j] * ((row[j] - mean[j]) * scale[j])
            plain[j] += out_i[j]
