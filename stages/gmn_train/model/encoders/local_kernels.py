"""The `local` encoder's token sums and their gradient as serial loops, channels innermost; tasks as in pooling_kernels.

Nothing of size (token slots, d) is ever stored: the backward pass computes each token's pre-activations again.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit


@njit(inline="always")
def _neighbour_means(x, nodes, begin, size, edges, first_edge, last_edge, directed, ch_lo, ch_hi, means, counts):
    """means[i] (size, channels) = mean of x over the nodes with an edge to node i of the token; zero without any."""
    width = ch_hi - ch_lo
    for i in range(size):
        counts[i] = 0
        for j in range(width):
            means[i, j] = 0
    for e in range(first_edge, last_edge):
        a, b = np.int64(edges[e, 0]), np.int64(edges[e, 1])
        x_a, into_b = x[nodes[begin + a], ch_lo:ch_hi], means[b]
        counts[b] += 1
        for j in range(width):
            into_b[j] += x_a[j]
        if a != b and not directed:
            x_b, into_a = x[nodes[begin + b], ch_lo:ch_hi], means[a]
            counts[a] += 1
            for j in range(width):
                into_a[j] += x_b[j]
    for i in range(size):
        if counts[i] > 1:
            scale = x.dtype.type(1) / x.dtype.type(counts[i])
            for j in range(width):
                means[i, j] *= scale


@njit(cache=True, nogil=True)
def local_outputs(own, near, root, nodes, node_ptr, edges, edge_ptr, directed, largest, first, last, out):
    """out[t] = mean over u of relu(own[u] + mean of near over u's neighbours in the token + root[v]).

    own, near, root: (U, d) rows already multiplied by W1, W2, W3; v is the token's first node. largest: nodes of the
    largest token.
    """
    width = own.shape[1]
    means, counts = np.empty((largest, width), own.dtype), np.empty(largest, np.int64)
    zero, one = own.dtype.type(0), own.dtype.type(1)
    for t in range(first, last):
        begin, size = node_ptr[t], node_ptr[t + 1] - node_ptr[t]
        _neighbour_means(
            near, nodes, begin, size, edges, edge_ptr[t], edge_ptr[t + 1], directed, 0, width, means, counts
        )
        out_t, root_v = out[t], root[nodes[begin]]
        for j in range(width):
            out_t[j] = zero
        for i in range(size):
            own_u, near_u = own[nodes[begin + i]], means[i]
            for j in range(width):
                out_t[j] += max(own_u[j] + near_u[j] + root_v[j], zero)
        scale = one / own.dtype.type(size)
        for j in range(width):
            out_t[j] *= scale


@njit(cache=True, nogil=True)
def local_gradients(
    own, near, root, nodes, node_ptr, edges, edge_ptr, directed, largest, ch_lo, ch_hi,
    grad_out, grad_own, grad_near, grad_root,
):  # fmt: skip
    """Add to grad_own, grad_near and grad_root (U, d), for these channels, what every token's gradient gives."""
    width = ch_hi - ch_lo
    means, counts = np.empty((largest, width), own.dtype), np.empty(largest, np.int64)
    zero, one = own.dtype.type(0), own.dtype.type(1)
    for t in range(node_ptr.size - 1):
        begin, size = node_ptr[t], node_ptr[t + 1] - node_ptr[t]
        _neighbour_means(
            near, nodes, begin, size, edges, edge_ptr[t], edge_ptr[t + 1], directed, ch_lo, ch_hi, means, counts
        )
        v = nodes[begin]
        grad_t, root_v, grad_v = grad_out[t, ch_lo:ch_hi], root[v, ch_lo:ch_hi], grad_root[v, ch_lo:ch_hi]
        scale = one / own.dtype.type(size)
        for i in range(size):
            u = nodes[begin + i]
            own_u, near_u, grad_u = own[u, ch_lo:ch_hi], means[i], grad_own[u, ch_lo:ch_hi]
            share = one / own.dtype.type(max(counts[i], 1))
            for j in range(width):
                open_ = own_u[j] + near_u[j] + root_v[j] > zero
                g = grad_t[j] * scale if open_ else zero
                grad_u[j] += g
                grad_v[j] += g
                near_u[j] = g * share  # now the gradient that each neighbour of u receives
        for e in range(edge_ptr[t], edge_ptr[t + 1]):
            a, b = np.int64(edges[e, 0]), np.int64(edges[e, 1])
            grad_a, from_b = grad_near[nodes[begin + a], ch_lo:ch_hi], means[b]
            for j in range(width):
                grad_a[j] += from_b[j]
            if a != b and not directed:
                grad_b, from_a = grad_near[nodes[begin + b], ch_lo:ch_hi], means[a]
                for j in range(width):
                    grad_b[j] += from_a[j]
