"""The fused end of a node layer: torch's norm and activation, and a mask that is drawn as it says."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import gelu, relu

from gmn_train.model.layers.rowwise.finish import finish, is_fused
from gmn_train.model.layers.rowwise.norms import BatchNorm
from tests.reference.counter_random import splitmix64
from tests.train.model.scan.scan_inputs import with_gradients

ACTIVATIONS = {None: lambda z: z, "relu": relu, "gelu": gelu}


def keep_mask(rows: int, width: int, key: int, threshold: int) -> torch.Tensor:
    """Slow twin of the mask: byte j of a row's draws."""
    mask = torch.zeros(rows, width)
    for i, row_key in enumerate(splitmix64(key, rows)):
        draws = splitmix64(row_key, width // 8 + 1)
        for j in range(width):
            byte = draws[j // 8] >> 8 * (j % 8) & 255
            mask[i, j] = 256 / (256 - threshold) if byte >= threshold else 0
    return mask


def make(kind, width):
    torch.manual_seed(0)
    norm = kind(width)
    with torch.no_grad():
        for p in norm.parameters():
            p.add_(torch.randn(width))
    return norm


@settings(deadline=None, max_examples=30)
@given(
    rows=st.integers(2, 40),
    width=st.sampled_from([16, 17, 31, 48, 220]),
    activation=st.sampled_from([None, "relu", "gelu"]),
    dropout=st.sampled_from([0.0, 0.2, 0.5]),
    seed=st.integers(0, 3),
)
def test_equals_torch(rows, width, activation, dropout, seed):
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(seed)) * 3 + 1
    x.requires_grad_()
    ours, theirs = make(BatchNorm, width), make(nn.BatchNorm1d, width)
    assert is_fused(x)
    torch.manual_seed(seed)
    found = with_gradients(finish(ours, x, activation, dropout, True), [x, *ours.parameters()])
    torch.manual_seed(seed)
    mask = keep_mask(rows, width, int(torch.randint(2**62, ())), round(dropout * 256))
    plain = ACTIVATIONS[activation](theirs(x)) * mask
    wanted = with_gradients(plain, [x, *theirs.parameters()])
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    for one, other in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_the_activation_is_that_of_evaluation(name):
    """A norm that changes nothing lets the activation through: over the whole line, to 2e-7 of max(|x|, 1)."""
    x = torch.linspace(-9, 9, 16 * 4096).view(-1, 16)
    x = torch.cat([x, -x])  # of mean zero
    norm = BatchNorm(16, eps=0.0)
    with torch.no_grad():
        norm.weight.copy_(x.double().var(0, correction=0).sqrt())
    found, wanted = finish(norm, x, name, 0.0, True), ACTIVATIONS[name](x.double())
    assert ((found - wanted).abs() <= 1e-6 * wanted.abs().clamp(min=1)).all()


def test_bits_do_not_depend_on_threads():
    before, found = torch.get_num_threads(), []
    x = torch.randn(3000, 24, generator=torch.Generator().manual_seed(1), requires_grad=True)
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            norm = make(BatchNorm, 24)
            torch.manual_seed(2)
            found.append(with_gradients(finish(norm, x, "gelu", 0.3, True), [x, *norm.parameters()]))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))
