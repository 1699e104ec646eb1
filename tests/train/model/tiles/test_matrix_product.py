"""Our small product is torch's, and so are its gradients."""

import pytest
import torch

from gmn_train.model.tiles.matrix_product import matrix_product


@pytest.mark.parametrize("shape", [(1, 1, 1), (20, 20, 20), (7, 33, 16), (64, 64, 70)])
def test_equals_torch(shape):
    m, k, n = shape
    a, b = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((m, k), (k, n)))
    torch.testing.assert_close(matrix_product(a, b), a @ b)
    weights = torch.randn(m, n, dtype=torch.float64)
    for one, other in zip(
        torch.autograd.grad(matrix_product(a, b), [a, b], weights),
        torch.autograd.grad(a @ b, [a, b], weights),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
