"""Counter-based random numbers: known answers, the slow twin, and what samplers rely on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy import stats

from gmn_pipeline.counter_random import Purpose, bounded, child_key, child_keys, key_path, root_key, unit_float
from tests.reference import counter_random as slow

uint64s = st.integers(0, 2**64 - 1)
small = st.integers(0, 40)


@njit
def _bounded(bits, n):
    return bounded(bits, n)


@njit
def _unit(bits):
    return unit_float(bits)


def test_known_answers() -> None:
    # SplitMix64's published test vector for state 1234567, and the first output for state 0.
    assert child_keys(np.uint64(1234567), 3).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]
    assert child_keys(np.uint64(0), 1)[0] == 0xE220A8397B1DCDAF


def test_a_draw_of_the_walks_never_changes() -> None:
    """Stores are shared: this number is part of format 1."""
    assert key_path(0, Purpose.WALK, 5, 3, 1, 2, 0) == slow.draw(0, 1, 5, 3, 1, 2, 0) == 10873042689906421716


@given(seed=st.integers(0, 2**63 - 1), purpose=st.sampled_from(Purpose), path=st.lists(small, max_size=5))
def test_path_equals_slow_twin(seed: int, purpose: Purpose, path: list[int]) -> None:
    assert int(key_path(seed, purpose, *path)) == slow.draw(seed, purpose, *path)


@given(bits=uint64s, n=st.integers(1, 2**32 - 1))
def test_bounded_is_the_exact_high_product(bits: int, n: int) -> None:
    assert _bounded(np.uint64(bits), np.uint64(n)) == slow.bounded(bits, n)


@given(bits=uint64s)
def test_unit_float_lies_in_the_half_open_interval(bits: int) -> None:
    assert 0.0 <= _unit(np.uint64(bits)) < 1.0


@pytest.mark.parametrize("n", [2, 3, 7, 100])
def test_bounded_draws_are_uniform(n: int) -> None:
    keys = child_keys(root_key(3, Purpose.SHUFFLE), 100_000)
    counts = np.bincount([slow.bounded(int(k), n) for k in keys[:20_000]], minlength=n)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_neighbouring_keys_are_independent() -> None:
    """Seeds, nodes and steps are small consecutive numbers: their draws must not resemble each other."""
    for one, other in ((root_key(0, Purpose.WALK), root_key(1, Purpose.WALK)), (np.uint64(0), np.uint64(1))):
        a, b = child_keys(one, 50_000), child_keys(other, 50_000)
        flipped = np.unpackbits((a ^ b).view(np.uint8)).mean()
        assert abs(flipped - 0.5) < 0.002
        assert abs(np.corrcoef(a.astype(float), b.astype(float))[0, 1]) < 0.02


def test_scalar_and_array_forms_agree() -> None:
    @njit
    def as_arrays(key, indices):
        return child_key(key, indices)

    indices = np.arange(10, dtype=np.uint64)
    assert as_arrays(np.uint64(9), indices).tolist() == child_keys(np.uint64(9), 10).tolist()
