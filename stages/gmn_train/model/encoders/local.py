"""`local`: one round of messages inside the token, fused: the encoder for token blocks on hidden states.

    token = mean over u of ReLU(W1 h_u + W2 mean of h over u's neighbours inside the token + W3 h_v)

W1, W2, W3 are applied once per node, not once per token slot, because a mean and a linear map commute. No norm: one
over a token's features would hide how much it has of anything, and one over tokens would make the result depend on how
the nodes are cut into chunks.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from gmn_pipeline.errors import ModelError
from gmn_train.data.token_chunks import TokenChunk
from gmn_train.machine.threads import run_tasks
from gmn_train.model.encoders.flat_edges import flat_edge_index
from gmn_train.model.encoders.local_kernels import local_gradients, local_outputs
from gmn_train.model.encoders.pooling import channel_ranges, token_ranges
from gmn_train.model.layers.recompute import gradient_sink
from gmn_train.model.scan.checks import has_kernels
from gmn_train.model.simd.vectors import LANES

if TYPE_CHECKING:
    from gmn_train.settings.model_settings import ModelConfig


class LocalEncoder(nn.Module):
    """See the module. Edge features are not used: `gatedgcn` and `gine` take them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.own, self.near, self.root = nn.Linear(width, width), nn.Linear(width, width, bias=False), nn.Linear(
            width, width, bias=False
        )  # fmt: skip

    def prepare(self, h: Tensor, edge_states: Tensor | None) -> tuple[Tensor, ...]:  # noqa: ARG002
        """What is computed once per node: W1 h, W2 h, W3 h, (U, d) each, d padded to what the kernels take."""
        states = self.own(h), self.near(h), self.root(h)
        return tuple(pad(x, (0, -x.shape[1] % LANES)) for x in states) if h.shape[1] % LANES else states

    def forward(self, chunk: TokenChunk, own: Tensor, near: Tensor, root: Tensor) -> Tensor:
        """(T, d)"""
        tokens, width = sum_messages(chunk, own, near, root), self.own.out_features
        return tokens if tokens.shape[1] == width else tokens[:, :width].contiguous()  # marks are added in place


def sum_messages(chunk: TokenChunk, own: Tensor, near: Tensor, root: Tensor) -> Tensor:
    """Mean over u of ReLU(own_u + mean of near over u's neighbours in the token + root_v): (T, d), d whole vectors."""
    if chunk.edges is None or chunk.edge_ptr is None:
        raise ModelError("the `local` encoder needs the tokens' edges; gather them with parts=('edges',)")
    if has_kernels(own):
        out: Tensor = LocalSum.apply(
            own, near, root, chunk.nodes, chunk.node_ptr, chunk.edges, chunk.edge_ptr, chunk.directed, chunk.largest
        )  # type: ignore[no-untyped-call]
        return out
    nodes, sizes = chunk.nodes.long(), chunk.node_ptr.diff()  # (N,), (T,)
    source, target = flat_edge_index(chunk)  # (E',) each, entries of `nodes`
    summed = own.new_zeros(len(nodes), own.shape[1]).index_add(0, target, near[nodes[source]])  # (N, d)
    degree = torch.bincount(target, minlength=len(nodes)).clamp(min=1).unsqueeze(1)  # (N, 1)
    first = torch.repeat_interleave(nodes[chunk.node_ptr[:-1]], sizes)  # (N,) each entry's v
    z = torch.relu(own[nodes] + summed / degree + root[first])  # (N, d)
    token = torch.repeat_interleave(torch.arange(len(sizes), device=own.device), sizes)
    return own.new_zeros(len(sizes), own.shape[1]).index_add(0, token, z) / sizes.unsqueeze(1)


class LocalSum(torch.autograd.Function):
    """Autograd node around the local kernels."""

    @staticmethod
    def forward(
        ctx: Any, own: Tensor, near: Tensor, root: Tensor, nodes: Tensor, node_ptr: Tensor, edges: Tensor,
        edge_ptr: Tensor, directed: bool, largest: int,
    ) -> Tensor:  # fmt: skip
        states = [x.detach().contiguous() for x in (own, near, root)]
        structure = (nodes, node_ptr, edges, edge_ptr)
        out = own.new_empty(len(node_ptr) - 1, own.shape[1])
        passed = torch.empty(len(nodes), own.shape[1] // 8, dtype=torch.uint8)
        arrays, filled = [x.numpy() for x in (*states, *structure)], (out.numpy(), passed.numpy())
        run_tasks(lambda task: local_outputs(*arrays, directed, largest, *task, *filled), token_ranges(len(out)))
        ctx.save_for_backward(passed, *structure)
        ctx.layout = (directed, largest)
        ctx.rows, ctx.sinks = len(own), [gradient_sink(x) for x in (own, near, root)]
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        width = grad_out.shape[1]
        grads = [grad_out.new_zeros(ctx.rows, width) if sink is None else sink for sink in ctx.sinks]
        arrays = [x.numpy() for x in saved]
        outputs = [x.numpy() for x in (grad_out.contiguous(), *grads)]
        run_tasks(lambda task: local_gradients(*arrays, *ctx.layout, *task, *outputs), channel_ranges(width))
        grads_without_sink = [grad if sink is None else None for grad, sink in zip(grads, ctx.sinks, strict=True)]
        return (*grads_without_sink, *[None] * 6)


def make(config: "ModelConfig", edge_features: bool) -> LocalEncoder:  # noqa: ARG001
    return LocalEncoder(config.width)
