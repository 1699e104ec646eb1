"""BiMamba is Algorithm 2, for any options, lengths and batches; `only_last` is its last row."""

import math

import pytest
import torch
from torch.nn.functional import softplus

from gmn_pipeline.errors import ModelError
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.scan import gated_scans
from tests.reference.bimamba import bimamba
from tests.train.model.layers.bimamba_inputs import gradients, make_layer, make_rows

OPTIONS = [
    {},
    {"bidirectional": False},
    {"shared_A": True, "expand": 1},
    {"states": 5, "expand": 1.5, "conv_width": 2, "dt_rank": 3},
    {"states": 1, "conv_width": 1},
]
LENGTHS = [4, 1, 40, 2]


def pointers(lengths):
    return torch.tensor([0, *lengths]).cumsum(0)


@pytest.mark.parametrize("options", OPTIONS)
def test_equals_algorithm_2(options):
    layer, x = make_layer(**options), make_rows(sum(LENGTHS))
    expected = torch.cat([bimamba(layer, part) for part in x.split(LENGTHS)])
    expected_grads = gradients(expected, layer, x)
    for backend in ("numba", "reference"):
        layer.backend = backend
        y = layer(x, pointers(LENGTHS))
        torch.testing.assert_close(y, expected)
        for ours, theirs in zip(gradients(y, layer, x), expected_grads, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_float32_equals_float64():
    layer, x = make_layer(32, states=16), make_rows(170, 32)
    exact = layer(x, pointers([17] * 10))
    ours = layer.float()(x.float(), pointers([17] * 10))
    assert (ours - exact).abs().max() < 1e-5 * exact.abs().max()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("backend", ["numba", "reference"])
def test_only_last_is_the_last_row(options, backend):
    layer, x = make_layer(**options, backend=backend), make_rows(sum(LENGTHS))
    ptr = pointers(LENGTHS)
    full, last = layer(x, ptr)[ptr[1:] - 1], layer(x, ptr, only_last=True)
    torch.testing.assert_close(last, full)
    for ours, theirs in zip(gradients(last, layer, x), gradients(full, layer, x), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_batch_equals_packed():
    layer, x = make_layer(), make_rows(24)
    packed = layer(x, pointers([8, 8, 8]))
    assert torch.equal(layer(x.view(3, 8, 12)).view(24, 12), packed)
    batched = layer(x.view(3, 8, 12), only_last=True)
    torch.testing.assert_close(batched, packed.view(3, 8, 12)[:, -1])


def test_other_sequences_change_nothing():
    layer, x = make_layer(), make_rows(sum(LENGTHS))
    together = layer(x, pointers(LENGTHS))
    for at, length in zip(pointers(LENGTHS).tolist(), LENGTHS, strict=False):
        alone = layer(x[None, at : at + length])[0]
        torch.testing.assert_close(alone, together[at : at + length])


@pytest.mark.parametrize("bidirectional", [False, True])
def test_who_sees_whom(bidirectional):
    layer, x = make_layer(bidirectional=bidirectional), make_rows(8)
    y = layer(x[None])[0]
    seen = torch.autograd.grad(y[3].sum(), x)[0].abs().sum(1) > 0
    assert seen.tolist() == [True] * 4 + [bidirectional] * 4


def test_last_row_of_the_backward_branch_sees_itself_only():
    layer, x = make_layer(), make_rows(8)
    ptr = pointers([8])
    (y,) = gated_scans([layer.backward_branch.scan_inputs(x, ptr)], "numba")
    seen = torch.autograd.grad(y[-1].sum(), x)[0].abs().sum(1) > 0
    assert seen.tolist() == [False] * 7 + [True]


def test_initialised_as_mamba():
    layer = BiMamba(64, states=16)
    for branch in (layer.forward_branch, layer.backward_branch):
        dt = softplus(branch.dt_up.bias.detach())
        assert 1e-3 * 0.999 <= float(dt.min()) < 2e-3
        assert 5e-2 < float(dt.max()) <= 1e-1 * 1.001
        torch.testing.assert_close(branch.A_log.detach().exp()[3], torch.arange(1.0, 17.0))
        assert torch.equal(branch.D, torch.ones(128))
        assert branch.dt_up.weight.shape == (128, 4)


def test_shared_a_is_one_parameter():
    layer = BiMamba(8, shared_A=True)
    assert layer.forward_branch.A_log is layer.backward_branch.A_log
    assert len(list(BiMamba(8).parameters())) == len(list(layer.parameters())) + 1
    copy = BiMamba(8, shared_A=True)
    copy.load_state_dict(layer.state_dict())
    x = make_rows(5, 8, torch.float32)[None]
    assert torch.equal(copy(x), layer(x))


def test_dropout_only_in_training():
    layer, x = make_layer(dropout=0.5), make_rows(10)[None]
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))
    changed = (make_layer(dropout=0.5)(x) - x == 0).double().mean()
    assert 0.2 < float(changed) < 0.8


def test_no_gradients_needed():
    layer, x = make_layer(dtype=torch.float32), make_rows(10, dtype=torch.float32)[None]
    with torch.no_grad():
        quiet = layer(x)
    assert torch.equal(quiet, layer(x))


@pytest.mark.parametrize("shape", [(0, 5, 12), (3, 0, 12)])
def test_empty(shape):
    x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    layer = make_layer()
    y = layer(x)
    y.sum().backward()
    assert y.shape == shape
    assert all(p.grad is not None and not p.grad.any() for p in layer.parameters())


@pytest.mark.parametrize(
    ("x", "seq_ptr", "only_last", "message"),
    [
        (torch.zeros(5, 12), None, False, r"expected \(batch, length, 12\)"),
        (torch.zeros(1, 5, 11), None, False, r"\(1, 5, 11\)"),
        (torch.zeros(5, 12), [0, 4], False, "from 0 to 4"),
        (torch.zeros(5, 12), [0, 4, 3, 5], False, "falls from 4 to 3"),
        (torch.zeros(5, 12), [0, 2, 2, 5], True, "sequence 1 is empty"),
        (torch.full((1, 5, 12), math.nan), None, False, "x holds 60 NaN"),
        (torch.zeros(1, 5, 12).double(), None, False, "torch.float64"),
    ],
)
def test_refuses(x, seq_ptr, only_last, message):
    layer = make_layer(dtype=torch.float32)
    with pytest.raises(ModelError, match=message):
        layer(x, None if seq_ptr is None else torch.tensor(seq_ptr), only_last=only_last)


@pytest.mark.parametrize(
    "options", [{"width": 0}, {"states": 0}, {"expand": 0}, {"conv_width": 0}, {"dt_rank": 0}, {"dropout": 1.0}]
)
def test_refuses_options(options):
    with pytest.raises(ModelError, match="must be"):
        BiMamba(**{"width": 8, **options})
