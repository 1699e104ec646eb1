"""Estimated return probabilities of all nodes at once, from random signs that walk.

Let z have a random sign for every node. Then (S^i z)(v) (S^j z)(v), S = D^-1/2 A D^-1/2, is P^(i+j)(v, v) on average:
the signs of different nodes cancel, and a sign times itself is 1. A product with S^j for all nodes costs one pass over
the edges per step, and gives every node a sample at once. Its variance is at most P^2i P^2j + (P^(i+j))^2 at v, so the
error is in proportion to the probability: small ones, which most nodes have after a few steps, take few probes, and
large ones are left to `return_walks`. On ogbn-arxiv 272 probes serve seven nodes in eight, in 4.5 core-seconds.
Sampling all nodes took about 50, sampling the rest takes 6.

P^j D^-1/2 z is what is kept: its products are those above divided by the degree, and one step is a plain mean over
neighbours.
"""

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, child_key, root_key
from gmn_pipeline.types import FloatArray, IntArray
from gmn_prep.encodings.random_walk.row_chunks import row_chunks

if TYPE_CHECKING:
    from gmn_prep.encodings.random_walk.row_chunks import Workers

BLOCK = 16
"""Probes that walk together: a node's 16 float32 are one cache line."""
PILOT_BLOCKS = 4
"""The first blocks only tell for which nodes the others will do. A choice by the estimate that it keeps would be a
choice of low ones: errors rise with estimates."""
LARGEST, MOST_BLOCKS = 0.05, 64
"""There are as many probes as give a probability of LARGEST the target's error, in at most MOST_BLOCKS blocks.
On ogbn-arxiv the whole takes 10.3 core-seconds with 0.05, 11.3 with 0.06 and 13 with 0.08."""
SHARE = 0.85
"""Where the pilot's error, scaled to all probes, is above this share of the target, `return_walks` samples the node."""


def return_sketch(
    indptr: IntArray, indices: IntArray, names: IntArray, k: int, seed: int, target: float, team: "Workers"
) -> tuple[FloatArray, FloatArray]:
    """(n, k) float32 estimates of P^(j+1)(v, v) and their standard errors, infinite where the pilot advises against it.

    The graph is undirected. Signs are keyed (block, names[v]); every sum has one order, so bytes do not depend on the
    team.
    """
    blocks = int(np.clip(np.ceil(2 * (LARGEST / target) ** 2 / BLOCK), PILOT_BLOCKS, MOST_BLOCKS))
    chunks = row_chunks(indptr, 64)
    key = root_key(seed, Purpose.RETURN_SIGNS)

    def moments(first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """The mean over the probes of blocks first .. last, and its standard error."""
        x, y = (np.zeros((indptr.size - 1, BLOCK), np.float32) for _ in range(2))
        sums, squares = (np.zeros((indptr.size - 1, k)) for _ in range(2))
        for block in range(first, last):
            team.run(lambda lo, hi, x=x, block=block: draw_signs(indptr, names, key, block, x, lo, hi), chunks)  # type: ignore[misc]
            for step in range((k + 1) // 2):
                team.run(
                    lambda lo, hi, x=x, out=y, step=step: walk_signs(  # type: ignore[misc]
                        indptr, indices, x, 2 * step, sums, squares, out, lo, hi
                    ),
                    chunks,
                )
                x, y = y, x
        probes = (last - first) * BLOCK
        sums /= probes
        squares = np.sqrt(np.maximum(squares / probes - sums**2, 0.0) / (probes - 1))
        return sums, squares

    pilot = moments(0, PILOT_BLOCKS)[1].astype(np.float32)
    values, errors = (a.astype(np.float32) for a in moments(PILOT_BLOCKS, PILOT_BLOCKS + blocks))
    errors[pilot * np.sqrt(PILOT_BLOCKS / blocks) > SHARE * target] = np.inf
    return values, errors


@njit(cache=True, nogil=True)
def draw_signs(indptr, names, key, block, out, lo, hi):  # type: ignore[no-untyped-def]
    """out[v] = +-degree^-1/2 for nodes lo .. hi, a sign for each of BLOCK probes; 0 of isolated nodes."""
    block_key = child_key(key, np.uint64(block))
    for v in range(lo, hi):
        bits = child_key(block_key, np.uint64(names[v]))
        degree = indptr[v + 1] - indptr[v]
        size = np.float32(1 / np.sqrt(degree) if degree > 0 else 0.0)
        for c in range(BLOCK):
            out[v, c] = size if (bits >> np.uint64(c)) & np.uint64(1) else -size


@njit(cache=True, nogil=True)
def walk_signs(indptr, indices, x, column, sums, squares, out, lo, hi):  # type: ignore[no-untyped-def]
    """out = P x for nodes lo .. hi. Adds degree * x out and degree * out out, summed over probes, to columns `column`
    and the next of `sums`, and the sums of their squares to `squares`."""
    total, terms = np.empty(BLOCK, np.float32), np.empty((4, BLOCK), np.float32)
    odd, odd_square, even, even_square = terms
    for v in range(lo, hi):
        degree = indptr[v + 1] - indptr[v]
        if degree == 0:
            continue
        for c in range(BLOCK):
            total[c] = 0
        for slot in range(indptr[v], indptr[v + 1]):
            u = indices[slot]
            for c in range(BLOCK):
                total[c] += x[u, c]
        inverse = np.float32(1 / degree)
        for c in range(BLOCK):
            out[v, c] = total[c] * inverse
            odd[c] = x[v, c] * total[c]
            odd_square[c] = odd[c] * odd[c]
            even[c] = total[c] * out[v, c]
            even_square[c] = even[c] * even[c]
        for t in range(4):  # halved in a fixed order
            for c in range(8):
                terms[t, c] += terms[t, c + 8]
            for c in range(4):
                terms[t, c] += terms[t, c + 4]
        sums[v, column] += odd[0] + odd[1] + odd[2] + odd[3]
        squares[v, column] += odd_square[0] + odd_square[1] + odd_square[2] + odd_square[3]
        if column + 1 < sums.shape[1]:
            sums[v, column + 1] += even[0] + even[1] + even[2] + even[3]
            squares[v, column + 1] += even_square[0] + even_square[1] + even_square[2] + even_square[3]
