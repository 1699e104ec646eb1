"""Token pooling and its gradient as serial loops, channels innermost.

Forward tasks split the tokens; backward tasks split the channels, so that every sum runs in token order whatever the
number of threads: deterministic, without atomics and without transposing the token matrix.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def token_means(x, nodes, node_ptr, first, last, out):
    """out[t] = mean of x over the nodes of token t, for tokens first..last-1; x (U, d), out (T, d)."""
    one = x.dtype.type(1)
    for t in range(first, last):
        begin, end = node_ptr[t], node_ptr[t + 1]
        out_t = out[t]
        x_u = x[nodes[begin]]
        for j in range(out_t.size):
            out_t[j] = x_u[j]
        for i in range(begin + 1, end):
            x_u = x[nodes[i]]
            for j in range(out_t.size):
                out_t[j] += x_u[j]
        scale = one / x.dtype.type(end - begin)
        for j in range(out_t.size):
            out_t[j] *= scale


@njit(cache=True, nogil=True)
def token_means_gradient(grad_out, nodes, node_ptr, ch_lo, ch_hi, grad_x):
    """Add to grad_x (U, d), for these channels, what every token's gradient gives its nodes."""
    one = grad_out.dtype.type(1)
    share = np.empty(ch_hi - ch_lo, grad_out.dtype)
    for t in range(node_ptr.size - 1):
        begin, end = node_ptr[t], node_ptr[t + 1]
        scale = one / grad_out.dtype.type(end - begin)
        grad_t = grad_out[t, ch_lo:ch_hi]
        for j in range(share.size):
            share[j] = grad_t[j] * scale
        for i in range(begin, end):
            grad_u = grad_x[nodes[i], ch_lo:ch_hi]
            for j in range(share.size):
                grad_u[j] += share[j]
