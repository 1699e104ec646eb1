"""A product of two small matrices whose bits do not depend on the number of threads.

torch's does: of 20 x 20 weights it had other last bits on two threads than on one.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from typing import Any

import torch
from numba import njit
from torch import Tensor
from torch.nn.functional import pad

from gmn_train.model.tiles.products import LANES, multiply


@njit(cache=True, nogil=True)
def fill_product(out, a, a_row, a_k, b):
    """out = a b; a begins at its first entry, with steps from row to row and along the sum."""
    rows, columns = out.shape
    multiply(out, 0, columns, rows, columns, a, 0, a_row, a_k, b, 0, columns, b.shape[0], False)


def matrix_product(a: Tensor, b: Tensor) -> Tensor:
    """a (m, k) times b (k, n)."""
    out: Tensor = MatrixProduct.apply(a, b)  # type: ignore[no-untyped-call]
    return out


class MatrixProduct(torch.autograd.Function):
    """Autograd node around the kernel."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return _product(a.contiguous(), b)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        return _product(grad.contiguous(), b.T), _product(a.contiguous(), grad, transposed=True)


def _product(a: Tensor, b: Tensor, *, transposed: bool = False) -> Tensor:
    """a b, or with `transposed` aᵀ b."""
    rows, a_row, a_k = (a.shape[1], 1, a.shape[1]) if transposed else (a.shape[0], a.shape[1], 1)
    padded = pad(b, (0, -b.shape[1] % LANES)).contiguous()
    out = a.new_empty(rows, padded.shape[1])
    fill_product(out.numpy(), a.detach().numpy(), a_row, a_k, padded.detach().numpy())
    return out[:, : b.shape[1]]
