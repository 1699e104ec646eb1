"""Random numbers that are a function of what they are for.

A key names a place in a tree; `child_key(key, i)` is the i-th child, and is the (i+1)-th output of SplitMix64 started
at state `key` (Steele, Lea & Flood 2014). A draw for (seed, purpose, node, level, repeat, walk, step) follows that path
from the root:

    root_key(seed, purpose) -> node -> level -> repeat -> walk -> step: 64 random bits

So a draw depends on nothing else: not on threads, on blocks, on what was drawn before, or on the machine. All samplers
of the project draw from here. The slow twin is `tests/reference/counter_random.py`.

The functions are scalar Numba kernels; given arrays of uint64 they work element by element.
"""

from enum import IntEnum

import numpy as np
from numba import njit

from gmn_pipeline.types import UInt64Array

GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31, _S32 = (np.uint64(b) for b in (11, 27, 30, 31, 32))
_LOW_32 = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


class Purpose(IntEnum):
    """What a draw is for. The numbers are part of store format 1: add, never renumber."""

    WALK = 1  # node, level, repeat, walk, step
    RETURN_WALK = 2  # node, walk, step: estimated return probabilities
    ORDER_TIES = 3  # node (and epoch): ties of a node ordering
    GENERATE = 4  # generated datasets: stream, item
    START_VECTOR = 5  # column, row: an eigensolver's first guess
    SHUFFLE = 6  # epoch, item: order of batches in training
    REPEATS = 7  # epoch, node, level: which stored repeats, in which order
    SIGN_FLIP = 8  # epoch, graph, column: Laplacian eigenvectors
    SPLIT = 9  # split, item: random splits of a user's own data
    WEIGHTS = 10  # a model's first weights: seeds torch's own generator
    DROPOUT = 11  # epoch, step: seeds torch's own generator for one training step
    CANDIDATES = 12  # pair, draw: nodes a link is ranked among where a graph has too many
    LINKS = 13  # use, item: which edges a link task asks for, and the unlinked pairs beside them
    SEARCH = 14  # trial: seeds the sampler that proposes its settings
    RETURN_SIGNS = 15  # block of probes, node: estimated return probabilities


@njit(inline="always")
def mix64(z):
    """SplitMix64's finaliser: a bijection of 64 bits in which every input bit flips half of the output bits."""
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@njit(inline="always")
def child_key(key, index):
    """Key (or, at a leaf, the 64 random bits) number `index` below `key`. Both are uint64, or arrays of it."""
    return mix64(key + GAMMA * (index + _ONE))


@njit(inline="always")
def bounded(bits, n):
    """An integer in [0, n) from 64 random bits; n is a uint64 below 2**32. The bias is below n / 2**64."""
    return ((bits >> _S32) * n + (((bits & _LOW_32) * n) >> _S32)) >> _S32


@njit(inline="always")
def unit_float(bits):
    """A float64 in [0, 1) from 64 random bits, on the grid of 2**-53."""
    return (bits >> _S11) * (1.0 / 9007199254740992.0)


def root_key(seed: int, purpose: Purpose) -> np.uint64:
    """The key below which all draws of one purpose lie."""
    mask = (1 << 64) - 1
    z = ((seed & mask) + int(GAMMA) * (int(purpose) + 1)) & mask
    z = ((z ^ (z >> 30)) * int(_MIX_1)) & mask
    z = ((z ^ (z >> 27)) * int(_MIX_2)) & mask
    return np.uint64(z ^ (z >> 31))


@njit(cache=True, nogil=True)
def _fill_child_keys(key, out):
    for i in range(out.size):
        out[i] = child_key(key, np.uint64(i))


def child_keys(key: np.uint64, count: int) -> UInt64Array:
    """The first `count` children of `key`, (count,) uint64."""
    out = np.empty(count, dtype=np.uint64)
    _fill_child_keys(key, out)
    return out


def key_path(seed: int, purpose: Purpose, *path: int) -> np.uint64:
    """The key at `path` below (seed, purpose), for code outside kernels."""
    key = int(root_key(seed, purpose))
    for index in path:
        key = int(child_key(np.uint64(key), np.uint64(index)))
    return np.uint64(key)
