"""The causal convolution + SiLU: both forms equal the slow twin, borders hold, bits repeat, bad inputs are refused."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline.errors import ModelError
from gmn_train.model.layers import conv
from gmn_train.model.layers.conv import causal_conv_silu, conv_rows, shifted_sum
from tests.reference.bimamba import conv_silu
from tests.train.model.scan.scan_inputs import TOLERANCE, assert_close, with_gradients

NAMES = ("out", "x", "weight", "bias")


def make_inputs(total, channels, taps, dtype=torch.float64, seed=0):
    rng = torch.Generator().manual_seed(seed)
    shapes = [(total, channels), (channels, taps), (channels,)]
    return [torch.randn(s, dtype=torch.float64, generator=rng).to(dtype).requires_grad_() for s in shapes]


def pointers(lengths):
    return torch.tensor([0, *lengths]).cumsum(0)


def slow(x, weight, bias, lengths, reverse):
    parts = [part.flip(0) if reverse else part for part in x.split(lengths)]
    outputs = [conv_silu(part, weight, bias) for part in parts]
    return torch.cat([part.flip(0) if reverse else part for part in outputs])


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    channels=st.one_of(st.integers(1, 8), st.sampled_from([64, 130])),
    taps=st.integers(1, 6),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    reverse=st.booleans(),
)
def test_equals_slow_twin(lengths, channels, taps, dtype, reverse):
    inputs = make_inputs(sum(lengths), channels, taps, dtype)
    expected = with_gradients(slow(*inputs, lengths, reverse), inputs)
    fused = causal_conv_silu(*inputs, seq_ptr=pointers(lengths), reverse=reverse)
    assert_close(with_gradients(fused, inputs), expected, TOLERANCE[dtype], NAMES)
    shifted = shifted_sum(*inputs, pointers(lengths), reverse)
    assert_close(with_gradients(shifted, inputs), expected, TOLERANCE[dtype], NAMES)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradcheck(reverse):
    inputs = make_inputs(9, 3, 4)
    ptr = pointers([2, 0, 7])
    torch.autograd.gradcheck(lambda *x: causal_conv_silu(*x, seq_ptr=ptr, reverse=reverse), inputs)


@pytest.mark.parametrize("reverse", [False, True])
def test_batch_equals_packed(reverse):
    x, weight, bias = make_inputs(24, 5, 4)
    packed = causal_conv_silu(x, weight, bias, seq_ptr=pointers([8, 8, 8]), reverse=reverse)
    batch = causal_conv_silu(x.view(3, 8, 5), weight, bias, reverse=reverse)
    assert torch.equal(batch.view(24, 5), packed)


def test_long_sums_keep_their_precision():
    inputs = make_inputs(60_000, 70, 4, torch.float32)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    ptr = pointers([50_000, 10_000])
    ours = [x.double() for x in with_gradients(conv_rows(*inputs, ptr, False), inputs)]
    assert_close(ours, with_gradients(shifted_sum(*exact, ptr, False), exact), 1e-5, NAMES)


def test_same_bits_for_any_thread_count():
    inputs = make_inputs(5100, 70, 4, torch.float32)
    before, results = torch.get_num_threads(), []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        results.append(with_gradients(conv_rows(*inputs, pointers([17] * 300), False), inputs))
    torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("reverse", [False, True])
def test_causal_conv1d_adapter(reverse, monkeypatch):
    def stand_in(x, weight, bias=None, activation=None):  # (batch, channels, length), as causal_conv1d_fn
        assert activation == "silu"
        return causal_conv_silu(x.transpose(1, 2), weight, bias).transpose(1, 2)

    monkeypatch.setattr(conv, "load_causal_conv1d", lambda: stand_in)
    inputs = make_inputs(24, 5, 4)
    ptr = pointers([8, 8, 8])
    through = conv.conv_batch(*inputs, ptr, reverse)
    torch.testing.assert_close(through, shifted_sum(*inputs, ptr, reverse))


@pytest.mark.parametrize(
    ("x", "weight", "bias", "message"),
    [
        (torch.zeros(6, 4), torch.zeros(4, 3), torch.zeros(4), "x \\(6, 4\\)"),
        (torch.zeros(2, 3, 4), torch.zeros(5, 3), torch.zeros(4), "weight \\(5, 3\\)"),
        (torch.zeros(2, 3, 4), torch.zeros(4, 3), torch.zeros(3), "bias \\(3,\\)"),
        (torch.zeros(2, 3, 4), torch.zeros(4, 0), torch.zeros(4), "0 taps"),
        (torch.zeros(2, 3, 4), torch.zeros(4, 3).double(), torch.zeros(4), "float64"),
        (torch.full((2, 3, 4), math.inf), torch.zeros(4, 3), torch.zeros(4), "x holds 24"),
    ],
)
def test_refuses(x, weight, bias, message):
    with pytest.raises(ModelError, match=message):
        causal_conv_silu(x, weight, bias)
