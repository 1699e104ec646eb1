"""The MPNN branch beside a node layer's scan, by name: `gcn`, `gcn-edges`, `gatedgcn`, `gine`.

`gcn` is one product with D^-1/2 (A + I) D^-1/2, whose transpose is kept for the gradient: 6.2 ms forward and backward
on Minesweeper at width 64, PyG's GCNConv (cached, edge index) 13.8 ms.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gmn_pipeline.tables import load_code
from gmn_train.data.inputs.record import Neighbourhood
from gmn_train.model.encoders.gatedgcn import gated_convolution, gated_messages
from gmn_train.model.encoders.gine import gine_convolution, gine_messages
from gmn_train.model.layers.rowwise.full_precision import full
from gmn_train.model.message_passing.edge_states import EdgeStates
from gmn_train.model.message_passing.gated import gated_outputs
from gmn_train.model.message_passing.gine_sums import gine_outputs, relu_messages
from gmn_train.model.scan.checks import has_kernels
from gmn_train.model.tables import BRANCHES

if TYPE_CHECKING:
    from gmn_train.settings.model_settings import ModelConfig


class SparseProduct(torch.autograd.Function):
    """matrix @ x with the transpose at hand for the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        with torch.autocast(x.device.type, enabled=False):  # it would make the sparse matrix bfloat16
            return matrix @ x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.transpose @ grad.contiguous(), None, None


class GcnBranch(nn.Module):
    """Â h W: see the module."""

    def __init__(self, width: int, edge_features: bool) -> None:  # noqa: ARG002
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, h: Tensor, near: Neighbourhood, edge_states: EdgeStates | None) -> Tensor:  # noqa: ARG002
        matrix, transpose = near.gcn_matrix
        if h.dtype != matrix.dtype:
            matrix, transpose = matrix.to(h.dtype), transpose.to(h.dtype)
        summed: Tensor = SparseProduct.apply(h, matrix, transpose)  # type: ignore[no-untyped-call]
        return self.project(summed)  # type: ignore[no-any-return]


class EdgeGcnBranch(nn.Module):
    """Σ ReLU(W h_j + edge): the edge-aware messages of tuned GCNs, without a norm and without the node itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, h: Tensor, near: Neighbourhood, edge_states: EdgeStates | None) -> Tensor:
        h = full(self.project(h))
        if has_kernels(h):
            return relu_messages(h, near.edge_order, edge_states)
        source, target = near.edge_index
        messages = h[source] if edge_states is None else h[source] + edge_states.of_all()
        return torch.zeros_like(h).index_add(0, target, torch.relu(messages))


class GatedBranch(nn.Module):
    """GatedGCN with the parameters of PyG's layer; by kernels on the CPU, by PyG elsewhere."""

    adds_skip = True

    def __init__(self, width: int, edge_features: bool) -> None:
        super().__init__()
        self.convolution = gated_convolution(width, edge_features)

    def forward(
        self, h: Tensor, near: Neighbourhood, edge_states: EdgeStates | None, skip: nn.Linear | None = None
    ) -> Tensor:
        """With `skip`, skip(h) is added."""
        if has_kernels(h):
            return gated_outputs(self.convolution, h, near.edge_order, edge_states, skip)
        states = None if edge_states is None else edge_states.of_all()
        messages = gated_messages(self.convolution, h, near.edge_index, states)
        return messages if skip is None else messages + skip(h)


class GineBranch(nn.Module):
    """GINE with the parameters of PyG's layer; by kernels on the CPU, by PyG elsewhere."""

    def __init__(self, width: int, edge_features: bool) -> None:
        super().__init__()
        self.convolution = gine_convolution(width, edge_features)

    def forward(self, h: Tensor, near: Neighbourhood, edge_states: EdgeStates | None) -> Tensor:
        if has_kernels(h):
            return gine_outputs(self.convolution, h, near.edge_order, edge_states, near.targets)
        return gine_messages(
            self.convolution, h, near.edge_index, None if edge_states is None else edge_states.of_all()
        )


def make_gcn(config: "ModelConfig", edge_features: bool) -> nn.Module:
    return GcnBranch(config.width, edge_features)


def make_gcn_edges(config: "ModelConfig", edge_features: bool) -> nn.Module:  # noqa: ARG001
    return EdgeGcnBranch(config.width)


def make_gatedgcn(config: "ModelConfig", edge_features: bool) -> nn.Module:
    return GatedBranch(config.width, edge_features)


def make_gine(config: "ModelConfig", edge_features: bool) -> nn.Module:
    return GineBranch(config.width, edge_features)


def make_branch(config: "ModelConfig", edge_features: bool) -> nn.Module | None:
    """The branch that `config.mpnn` names; None for `none`."""
    if config.mpnn == "none":
        return None
    branch: nn.Module = load_code(BRANCHES[config.mpnn].code)(config, edge_features)
    return branch
