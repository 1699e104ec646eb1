"""Products of bfloat16 inside kernels: factors rounded as torch rounds them, sums as exact as float32's."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.tiles import half_products
from gmn_train.model.tiles.half_products import pairs_room, product
from gmn_train.model.tiles.products import make_block
from tests.train.model.scan.scan_inputs import with_gradients


@njit(nogil=True)
def multiply_once(out, a, transposed, b, depth, add, half):
    rows, columns = out.shape
    pairs = pairs_room(max(rows, depth), max(a.shape[1], b.shape[1], rows), half)
    row, along = (1, a.shape[1]) if transposed else (a.shape[1], 1)
    product(out, 0, columns, rows, columns, a, 0, row, along, b, 0, columns, depth, add, pairs)


def rounded(x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(x).bfloat16().double()


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 20),
    vectors=st.integers(1, 5),
    depth=st.integers(1, 40),
    transposed=st.booleans(),
    add=st.booleans(),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
    seed=st.integers(0, 9),
)
def test_equals_rounded_factors(rows, vectors, depth, transposed, add, scale, seed):
    rng = np.random.default_rng(seed)
    padded = -(-depth // 16) * 16
    a, b = np.zeros((rows, padded), np.float32), np.zeros((padded, 16 * vectors), np.float32)
    a[:, :depth] = rng.normal(size=(rows, depth)) * scale
    b[:depth] = rng.normal(size=(depth, 16 * vectors))
    out = rng.normal(size=(rows, 16 * vectors)).astype(np.float32)
    wanted = rounded(a) @ rounded(b) + (torch.from_numpy(out).double() if add else 0)
    if transposed:  # sums over rows, whose last one may be odd; nothing behind it may be read
        wide = -(-rows // 16) * 16
        turned = np.full((padded, wide), np.nan, np.float32)
        turned[:depth, :rows] = a[:, :depth].T
        turned[:depth, rows:] = 0
        b[depth:] = np.nan
        multiply_once(out, turned, True, b, depth, add, True)
    else:
        multiply_once(out, a, False, b, depth, add, True)
    size = rounded(abs(a)) @ rounded(np.nan_to_num(abs(b))) + 1e-30
    assert (((torch.from_numpy(out) - wanted) / (size + 1)).abs() < 1e-5).all()


def test_without_the_instruction(monkeypatch):
    """Pairs that are taken apart give the same sums."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 8), (8, 16)))
    a_pairs = torch.from_numpy(a).bfloat16().view(torch.int32).numpy()  # (3, 4)
    b_pairs = torch.from_numpy(b.reshape(4, 2, 16).swapaxes(1, 2).copy()).bfloat16().view(torch.int32).numpy()
    found = []
    for has_dot in {half_products.HAS_DOT, False}:
        monkeypatch.setattr(half_products, "HAS_DOT", has_dot)
        block, out = make_block(3, 1, half_products.add_pairs), np.zeros((3, 16), np.float32)

        @njit
        def run(out, a, b, block=block):
            block(out, 0, 16, a, 0, 4, 1, b, 0, 16, 4, False)

        run(out, a_pairs, b_pairs.reshape(4, 16))
        found.append(out)
    for out in found:
        np.testing.assert_allclose(out, (rounded(a) @ rounded(b)).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("only_last", [False, True])
@pytest.mark.parametrize("length", [3, 700])
def test_a_layer_in_bf16(length, only_last):
    """Near float32, and the same bits for any number of threads."""
    if only_last and length > 512:
        pytest.skip("long sequences have all rows")
    torch.manual_seed(0)
    layer = BiMamba(20, states=5, expand=1)
    x = torch.randn(4 if length > 512 else 400, length, 20, requires_grad=True)
    before, found = torch.get_num_threads(), []
    try:
        for threads, half in ((1, False), (1, True), (2, True), (3, True)):
            torch.set_num_threads(threads)
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                y = layer(x, only_last=only_last)
            found.append(with_gradients(y, [x, *layer.parameters()]))
    finally:
        torch.set_num_threads(before)
    full, half, *others = found
    assert not torch.equal(full[0], half[0])
    for one, other in zip(full, half, strict=True):
        assert (one - other).norm() <= 0.02 * one.norm() + 1e-6
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(half, other, strict=True))
