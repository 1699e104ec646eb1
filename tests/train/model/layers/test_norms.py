"""Our norms are torch's, and their bits do not depend on threads."""

import pytest
import torch
from torch import nn

from gmn_train.model.layers.rowwise.norms import BatchNorm, LayerNorm
from tests.train.model.scan.scan_inputs import assert_close, with_gradients

PAIRS = [(BatchNorm, nn.BatchNorm1d), (LayerNorm, nn.LayerNorm)]


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def make(kind, width, dtype):
    torch.manual_seed(0)
    norm = kind(width).to(dtype)
    with torch.no_grad():
        for p in norm.parameters():
            p.add_(torch.randn(width).to(dtype))
    return norm


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("shape", [(2, 1), (7, 5), (1500, 64)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_torch(ours, theirs, shape, dtype):
    x = (torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 2 + 3).to(dtype)
    x.requires_grad_()
    a, b = make(ours, shape[1], dtype), make(theirs, shape[1], dtype)
    found = with_gradients(a(x), [x, *a.parameters()])
    wanted = with_gradients(b(x), [x, *b.parameters()])
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=2e-5)
    if ours is BatchNorm:
        for (name, one), other in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
            torch.testing.assert_close(one, other, msg=name)
    a.eval()
    b.eval()
    assert_close([a(x).detach()], [b(x).detach()], 1e-5, ["y"])


@pytest.mark.parametrize("kind", [BatchNorm, LayerNorm])
def test_bits_do_not_depend_on_threads(kind, threads):
    x = torch.randn(5000, 24, generator=torch.Generator().manual_seed(1), requires_grad=True)
    found = []
    for count in (1, 2, 3):
        threads(count)
        norm = make(kind, 24, torch.float32)
        found.append(with_gradients(norm(x), [x, *norm.parameters()]))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))
