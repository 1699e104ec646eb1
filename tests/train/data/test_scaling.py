"""How columns are scaled: standardised, left alone, or, where most values are zero, with their zeros kept."""

import numpy as np
import pytest

from gmn_train.data.trained_on import Columns, measure_scaling

RNG = np.random.default_rng(0)


def scaled(values: np.ndarray) -> np.ndarray:
    return Columns(values.shape[1], None, None, *measure_scaling(values)).apply(values)


def test_a_column_in_millions_is_standardised() -> None:
    values = RNG.normal(3e6, 1e5, (500, 1))
    out = scaled(values)
    assert out.mean() == pytest.approx(0, abs=1e-5)
    assert out.std() == pytest.approx(1, abs=1e-5)


def test_columns_of_order_one_and_of_zeros_and_ones_are_left_alone() -> None:
    values = np.stack([RNG.normal(size=500), RNG.random(500) < 0.01], 1).astype(float)
    assert measure_scaling(values) == (None, None)


def test_counts_of_words_keep_their_zeros_and_weights_with_few_rows() -> None:
    words = np.where(RNG.random((60, 200)) < 0.1, RNG.uniform(0.01, 0.05, (60, 200)), 0.0)
    out = scaled(words)
    assert ((out == 0) == (words == 0)).all()
    there = words != 0
    assert np.sqrt((out[there] ** 2).mean()) == pytest.approx(1, rel=1e-3)
    ratio = out[there] / words[there]
    assert ratio.max() == pytest.approx(ratio.min(), rel=1e-4)  # one scale: rare words are not blown up


def test_columns_of_mostly_zeros_in_other_units_have_their_own_scale() -> None:
    some = RNG.random((1000, 2)) < 0.1
    values = np.where(some, RNG.uniform(0.5, 1.5, (1000, 2)) * (1e5, 0.001), 0.0)
    out = scaled(values)
    assert ((out == 0) == ~some).all()
    for column in (0, 1):
        assert np.sqrt((out[some[:, column], column] ** 2).mean()) == pytest.approx(1, rel=1e-3)


def test_a_column_of_zeros_and_one_of_missing_values_do_no_harm() -> None:
    values = np.zeros((10, 3))
    values[:, 1] = np.nan
    values[0, 2] = 500.0
    out = scaled(values)
    assert (out[:, 0] == 0).all()
    assert out[0, 2] == pytest.approx(1)
