"""A layer on tiles is the layer on all rows at once, and its bits depend on neither threads nor the size of a tile."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from gmn_train.model.layers import bimamba
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.simd.unowned import hold, unowned
from gmn_train.model.simd.vector_math import exp2, sigmoid, softplus
from gmn_train.model.simd.vectors import (
    LANES,
    QUAD,
    keep_marked,
    load,
    load_quad,
    multiply_add,
    relu,
    store,
    store_positive,
    store_totals,
    total,
)
from gmn_train.model.tiles import layer as tile_layer
from gmn_train.model.tiles.products import multiply
from tests.train.model.layers.bimamba_inputs import gradients, make_layer, make_rows
from tests.train.model.scan.scan_inputs import TOLERANCE, pointers


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def compare(layer, x, ptr, only_last, tolerance):
    """The tiles' result and gradients against those of the layer in separate steps."""
    ours = layer(x, ptr, only_last=only_last)
    ours_grads = gradients(ours, layer, x)
    layer.fits_tiles = lambda *_: False
    theirs = layer(x, ptr, only_last=only_last)
    theirs_grads = gradients(theirs, layer, x)
    for a, b in zip([ours, *ours_grads], [theirs, *theirs_grads], strict=True):
        assert a.shape == b.shape
        if a.numel():
            assert float((a - b).detach().abs().max()) <= tolerance * max(float(b.detach().abs().max()), 1.0)


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    width=st.sampled_from([2, 12, 16, 20, 48, 64, 96]),
    states=st.integers(1, 17),
    expand=st.sampled_from([1, 1.5, 2]),
    conv_width=st.integers(1, 5),
    options=st.fixed_dictionaries({"bidirectional": st.booleans(), "shared_A": st.booleans()}),
    only_last=st.booleans(),
    rows=st.sampled_from([1, 7, 96]),
)
def test_tiles_equal_separate_steps(lengths, width, states, expand, conv_width, options, only_last, rows):
    if only_last:
        lengths = [max(n, 1) for n in lengths]
    if sum(lengths) == 0 or int(expand * width) < 1:
        return
    before, tile_layer.TILE_ROWS = tile_layer.TILE_ROWS, rows
    try:
        layer = make_layer(width, states=states, expand=expand, conv_width=conv_width, **options)
        x = make_rows(sum(lengths), width)
        compare(layer, x, pointers(lengths), only_last, TOLERANCE[torch.float64])
    finally:
        tile_layer.TILE_ROWS = before


@pytest.mark.parametrize("only_last", [False, True])
@pytest.mark.parametrize("lengths", [[17] * 200, [1, 40, 0, 3, 70, 17] * 30])
def test_bits_depend_on_neither_threads_nor_tiles(lengths, only_last, threads, monkeypatch):
    if only_last:
        lengths = [n for n in lengths if n]
    layer, x = make_layer(32, torch.float32, expand=1), make_rows(sum(lengths), 32, torch.float32)
    found = []
    for count, rows in ((1, 96), (2, 96), (3, 96), (2, 1), (3, 40), (1, 500)):
        threads(count)
        monkeypatch.setattr(tile_layer, "TILE_ROWS", rows)
        y = layer(x, pointers(lengths), only_last=only_last)
        found.append([y, *gradients(y, layer, x)])
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.sampled_from([0, 1, 2, 31, 95, 96, 97, 98, 200, 300]), min_size=1, max_size=3),
    width=st.sampled_from([2, 12, 16, 80]),
    conv_width=st.integers(1, 5),
    bidirectional=st.booleans(),
)
def test_long_sequences_equal_separate_steps(lengths, width, conv_width, bidirectional):
    if sum(lengths) == 0:
        return
    before, bimamba.LONGEST = bimamba.LONGEST, 0
    try:
        layer = make_layer(width, states=5, expand=1, conv_width=conv_width, bidirectional=bidirectional)
        compare(layer, make_rows(sum(lengths), width), pointers(lengths), False, TOLERANCE[torch.float64])
    finally:
        bimamba.LONGEST = before


def test_bits_of_a_long_sequence_do_not_depend_on_threads(threads):
    layer, x = make_layer(32, torch.float32, expand=1), make_rows(3000, 32, torch.float32)
    found = []
    for count in (1, 2, 3):
        threads(count)
        y = layer(x, pointers([1, 2900, 99]))
        found.append([y, *gradients(y, layer, x)])
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_gradcheck():
    layer = make_layer(5, states=3, expand=1, conv_width=3)
    x = make_rows(9, 5)
    assert torch.autograd.gradcheck(lambda x: layer(x, pointers([4, 1, 4])), x)


def test_saves_only_its_input():
    layer, x = BiMamba(16, expand=1), torch.randn(50, 9, 16, requires_grad=True)
    saved = {}

    def pack(t):
        saved[t.untyped_storage().data_ptr()] = t.numel()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        layer(x)
    weights = sum(p.numel() for p in layer.parameters())
    assert sum(saved.values()) < x.numel() + 8 * weights


def test_dropout_is_of_the_update():
    layer, x = make_layer(16, torch.float32, dropout=0.5), make_rows(34, 16, torch.float32)
    for only_last in (False, True):
        torch.manual_seed(0)
        ours = layer(x, pointers([17, 17]), only_last=only_last)
        torch.manual_seed(0)
        layer.fits_tiles = lambda *_: False
        torch.testing.assert_close(ours, layer(x, pointers([17, 17]), only_last=only_last))
        del layer.fits_tiles


@njit
def product(out, a, b, a_row, a_k, depth, add):
    multiply(out, 0, out.shape[1], out.shape[0], out.shape[1], a, 0, a_row, a_k, b, 0, b.shape[1], depth, add)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 20), st.integers(0, 30), st.integers(1, 9), st.booleans(), st.booleans())
def test_products(rows, depth, vectors, transposed, add):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((rows, depth)), rng.standard_normal((depth, vectors * LANES))
    out = rng.standard_normal((rows, vectors * LANES))
    expected = a @ b + (out if add else 0)
    if transposed:
        product(out, np.ascontiguousarray(a.T), b, 1, rows, depth, add)
    else:
        product(out, a, b, depth, 1, depth, add)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@njit
def functions(x, powers, shares, plus):
    for i in range(0, x.size, LANES):
        store(powers, i, exp2(load(x, i)))
        store(shares, i, sigmoid(load(x, i)))
        store(plus, i, softplus(load(x, i)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_vectors(dtype):
    x = np.linspace(-20, 20, 160 * LANES).astype(dtype)
    exact = x.astype(np.longdouble)
    found = [np.empty_like(x) for _ in range(3)]
    functions(x, *found)
    for ours, true in zip(found, (np.exp2(exact), 1 / (1 + np.exp(-exact)), np.logaddexp(exact, 0)), strict=True):
        assert float(np.max(np.abs(ours - true) / true)) < 12 * np.finfo(dtype).eps


@njit
def totals(x, four):
    store_totals(four, 0, load_quad(x, 0))
    return total(load(x, 0))


def test_sums_over_lanes():
    x, four = np.arange(4.0 * LANES), np.empty(4)
    assert totals(x, four) == x[:LANES].sum()
    assert four.tolist() == x.reshape(4, LANES).sum(1).tolist()


@njit
def marked(x, y, bits, kept, opened, fused):
    for i in range(0, x.size, QUAD):
        store_positive(bits, i // 8, load_quad(x, i))
        store(kept, i, keep_marked(bits, i // 8, load_quad(y, i)))
        store(opened, i, relu(load_quad(x, i)))
        store(fused, i, multiply_add(load_quad(x, i), load_quad(y, i), load_quad(x, i)))


def test_bits_of_positive_lanes():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 4 * QUAD))
    x[::7] = 0.0
    bits, (kept, opened, fused) = np.empty(x.size // 8, np.uint8), np.empty((3, x.size))
    marked(x, y, bits, kept, opened, fused)
    assert np.array_equal(np.unpackbits(bits, bitorder="little").astype(bool), x > 0)
    assert np.array_equal(kept, np.where(x > 0, y, 0))
    assert np.array_equal(opened, np.maximum(x, 0))
    np.testing.assert_allclose(fused, x * y + x, rtol=1e-14, atol=1e-14)


@njit
def borrowed_sum(x):
    """Sums an array of its own that only `hold` keeps until the end."""
    memory = (x + 1, x * 2)
    one, two = unowned(memory)
    found = 0.0
    for _ in range(50):
        others = np.zeros(x.size)  # takes the memory if it was let go of
        found += one.sum() + two.sum() + others.sum()
    hold(memory)
    return found


def test_memory_of_unowned_arrays_is_held():
    x = np.arange(1000.0)
    assert borrowed_sum(x) == 50 * (3 * x.sum() + x.size)
