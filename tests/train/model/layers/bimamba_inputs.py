"""Layers and rows for tests of BiMamba, whichever way it is computed."""

import torch

from gmn_train.model.layers.bimamba import BiMamba


def make_layer(width=12, dtype=torch.float64, seed=0, **options):
    torch.manual_seed(seed)
    layer = BiMamba(width, **options).to(dtype)
    with torch.no_grad():  # away from the initial values, so that every parameter matters
        for p in layer.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return layer


def make_rows(total, width=12, dtype=torch.float64, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(total, width, dtype=torch.float64, generator=rng).to(dtype).requires_grad_()


def gradients(y, layer, x):
    weights = torch.randn(y.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).to(y.dtype)
    return torch.autograd.grad(y, [x, *layer.parameters()], weights, allow_unused=True, materialize_grads=True)
