"""BatchNorm's and LayerNorm's sums over rows, in row order within ranges of rows that depend on the shapes alone.

torch's own sum rows in pieces per thread: their last bits change with the number of threads. Sums are float64.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def column_sums(x, first, last, total):
    """total (d,) += sums of rows first..last-1 of x (S, d)."""
    for i in range(first, last):
        row = x[i]
        for j in range(row.size):
            total[j] += row[j]


@njit(cache=True, nogil=True)
def column_squares(x, mean, first, last, total):
    """total (d,) += sums of squares of x - mean over rows first..last-1."""
    for i in range(first, last):
        row = x[i]
        for j in range(row.size):
            off = row[j] - mean[j]
            total[j] += off * off


@njit(cache=True, nogil=True)
def scale_rows(x, factor, shift, first, last, out):
    """out = x * factor + shift, by column, for rows first..last-1."""
    for i in range(first, last):
        row, out_i = x[i], out[i]
        for j in range(row.size):
            out_i[j] = row[j] * factor[j] + shift[j]


@njit(cache=True, nogil=True)
def batch_norm_sums(x, grad, mean, scale, first, last, total):
    """total (2, d) += sums of grad times the normalised x, and of grad, over rows first..last-1."""
    along, plain = total[0], total[1]
    for i in range(first, last):
        row, grad_i = x[i], grad[i]
        for j in range(row.size):
            along[j] += grad_i[j] * ((row[j] - mean[j]) * scale[j])
            plain[j] += grad_i[j]


@njit(cache=True, nogil=True)
def batch_norm_gradient(x, grad, mean, scale, factor, along, plain, first, last, out):
    """out = factor (grad - plain - hat along), by column; hat: the normalised x; along and plain: means of the sums."""
    for i in range(first, last):
        row, grad_i, out_i = x[i], grad[i], out[i]
        for j in range(row.size):
            hat = (row[j] - mean[j]) * scale[j]
            out_i[j] = factor[j] * (grad_i[j] - plain[j] - hat * along[j])


@njit(cache=True, nogil=True)
def layer_norm_rows(x, weight, bias, eps, first, last, moments, out):
    """out = norm of each row; moments (S, 2): mean and 1 / deviation."""
    d = x.shape[1]
    for i in range(first, last):
        row, out_i = x[i], out[i]
        mean = 0.0
        for j in range(d):
            mean += row[j]
        mean /= d
        square = 0.0
        for j in range(d):
            square += (row[j] - mean) * (row[j] - mean)
        scale = 1.0 / np.sqrt(square / d + eps)
        moments[i, 0], moments[i, 1] = mean, scale
        shift, factor = x.dtype.type(mean), x.dtype.type(scale)
        for j in range(d):
            out_i[j] = (row[j] - shift) * factor * weight[j] + bias[j]


@njit(cache=True, nogil=True)
def layer_norm_gradient(x, weight, moments, grad, first, last, out, total):
    """out = the gradient of x; total (2, d) += those of weight and bias."""
    d = x.shape[1]
    along, plain = total[0], total[1]
    for i in range(first, last):
        row, grad_i, out_i = x[i], grad[i], out[i]
        mean, scale = moments[i, 0], moments[i, 1]
        one, two = 0.0, 0.0
        for j in range(d):
            hat = (row[j] - mean) * scale
            along[j] += grad_i[j] * hat
            plain[j] += grad_i[j]
            one += grad_i[j] * weight[j]
            two += grad_i[j] * weight[j] * hat
        one, two = one / d, two / d
        for j in range(d):
            hat = (row[j] - mean) * scale
            out_i[j] = scale * (grad_i[j] * weight[j] - one - hat * two)
