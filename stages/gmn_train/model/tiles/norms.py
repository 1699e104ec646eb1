"""LayerNorm of a tile's rows and its gradient; sums over features in vectors, the rest one by one."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from gmn_train.model.simd.inner import inner
from gmn_train.model.simd.vectors import LANES, load, spread, store, total


@inner
def normalise_rows(x, begin, rows, weight, eps, moments, out):
    """out[i] = norm of x[begin + i]; weight (2, d) is scale and shift; moments (rows, 2): mean, 1 / deviation.

    out has its own, padded row length.
    """
    d, step = x.shape[1], out.shape[1]
    whole = d - d % LANES
    one, count = x.dtype.type(1), x.dtype.type(d)
    for i in range(rows):
        at = (begin + i) * d
        row = x[begin + i]
        sums = spread(x.dtype.type(0))
        for j in range(0, whole, LANES):
            sums = sums + load(x, at + j)
        mean = total(sums)
        for j in range(whole, d):
            mean += row[j]
        mean /= count
        squares = spread(x.dtype.type(0))
        for j in range(0, whole, LANES):
            off = load(x, at + j) - spread(mean)
            squares = squares + off * off
        variance = total(squares)
        for j in range(whole, d):
            variance += (row[j] - mean) * (row[j] - mean)
        scale = one / np.sqrt(variance / count + x.dtype.type(eps))
        moments[i, 0], moments[i, 1] = mean, scale
        for j in range(0, whole, LANES):
            hat = (load(x, at + j) - spread(mean)) * spread(scale)
            store(out, i * step + j, hat * load(weight, j) + load(weight, d + j))
        for j in range(whole, d):
            out[i, j] = (row[j] - mean) * scale * weight[0, j] + weight[1, j]


@inner
def norm_gradients(x, begin, first, last, weight, moments, grad, sums, sums_at, out):
    """out[begin + i] += the gradient of x of grad[i] at the norm; sums[sums_at:] += those of (2, d) weights."""
    d, step = x.shape[1], grad.shape[1]
    whole = d - d % LANES
    count, zero = x.dtype.type(d), x.dtype.type(0)
    for i in range(first, last):
        at = (begin + i) * d
        row, out_i = x[begin + i], out[begin + i]
        mean, scale = moments[i, 0], moments[i, 1]
        plain, along = spread(zero), spread(zero)
        for j in range(0, whole, LANES):
            g = load(grad, i * step + j)
            hat = (load(x, at + j) - spread(mean)) * spread(scale)
            store(sums, sums_at + j, load(sums, sums_at + j) + g * hat)
            store(sums, sums_at + d + j, load(sums, sums_at + d + j) + g)
            g = g * load(weight, j)
            plain = plain + g
            along = along + g * hat
        first, second = total(plain), total(along)
        for j in range(whole, d):
            g, hat_j = grad[i, j], (row[j] - mean) * scale
            sums[sums_at + j] += g * hat_j
            sums[sums_at + d + j] += g
            first += g * weight[0, j]
            second += g * weight[0, j] * hat_j
        first /= count
        second /= count
        for j in range(0, whole, LANES):
            hat = (load(x, at + j) - spread(mean)) * spread(scale)
            g = load(grad, i * step + j) * load(weight, j) - spread(first) - hat * spread(second)
            store(out, at + j, load(out, at + j) + spread(scale) * g)
        for j in range(whole, d):
            hat_j = (row[j] - mean) * scale
            out_i[j] += scale * (grad[i, j] * weight[0, j] - first - hat_j * second)
