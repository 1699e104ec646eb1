"""Random inputs for the scan's tests, and how closely two results must agree."""

import torch
from torch import Tensor

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
NAMES = ["u", "delta", "A", "B", "C", "D"]


def make_inputs(rows: tuple[int, ...], channels: int, states: int, dtype=torch.float64, seed=0) -> list[Tensor]:
    """u, delta, A, B, C, D that require gradients; `rows` is (total,) or (batch, length)."""
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=rng)

    delta = torch.exp(torch.rand(*rows, channels, dtype=torch.float64, generator=rng) * 5 - 6)  # 0.002 to 0.4
    decay = -torch.arange(1, states + 1) * torch.exp(0.1 * normal(channels, states))
    inputs = [normal(*rows, channels), delta, decay, normal(*rows, states), normal(*rows, states), normal(channels)]
    return [x.to(dtype).requires_grad_() for x in inputs]


def with_gradients(outputs: Tensor, inputs: list[Tensor], seed=1) -> list[Tensor]:
    """The outputs, then the gradients of a fixed random combination of them."""
    rng = torch.Generator().manual_seed(seed)
    weights = torch.randn(outputs.shape, dtype=torch.float64, generator=rng).to(outputs.dtype)
    grads = torch.autograd.grad(outputs, inputs, weights, allow_unused=True, materialize_grads=True)
    return [outputs.detach(), *grads]


def assert_close(ours: list[Tensor], theirs: list[Tensor], tolerance: float, names=("y", *NAMES)) -> None:
    """Largest difference below `tolerance` times the largest value, tensor by tensor."""
    for name, a, b in zip(names, ours, theirs, strict=True):
        assert a.shape == b.shape, name
        if a.numel():
            assert float((a - b).abs().max()) <= tolerance * float(b.abs().max()), name


def pointers(lengths):
    """Borders of packed sequences."""
    return torch.tensor([0, *lengths]).cumsum(0)
