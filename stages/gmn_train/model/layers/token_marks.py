"""What is added to every token encoding before its sequence is scanned: level, size, and dropout keyed by node.

One pass in place instead of five (add, add, draw a mask, multiply, divide). The mask is a function of (key, node id,
position, channel), so it is the same however nodes are cut into chunks, costs no memory, and is computed again in the
backward pass instead of stored.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from gmn_pipeline.counter_random import child_key
from gmn_train.data.token_chunks import TokenChunk
from gmn_train.machine.threads import run_tasks
from gmn_train.model.scan.checks import has_kernels

NODES_PER_TASK = 512
_S16, _U1, _U4 = np.uint64(16), np.uint64(1), np.uint64(4)
_LOW_16 = np.uint64(0xFFFF)


class TokenMarks(nn.Module):
    """tokens + level[m̂] + log(size) * size_weight, then dropout; in place."""

    def __init__(self, width: int, levels: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.level = nn.Parameter(torch.randn(levels, width) * 0.02)
        self.size_weight = nn.Parameter(torch.zeros(width))

    def forward(self, tokens: Tensor, chunk: TokenChunk, key: int) -> Tensor:
        """tokens (T, d), changed and returned. key: 64 bits, new for every step and block."""
        levels = torch.from_numpy(chunk.settings.levels).to(tokens.device)  # (L,)
        at_level = self.level[levels]  # (L, d)
        log_size = chunk.node_ptr.diff().to(tokens.dtype).log_()  # (T,)
        threshold = round(self.dropout * 65536) if self.training else 0
        if has_kernels(tokens):
            out: Tensor = MarkTokens.apply(tokens, at_level, self.size_weight, log_size, chunk.node_ids, key, threshold)
            return out
        marked = tokens.view(len(chunk), -1, tokens.shape[1]) + at_level  # (B, L, d)
        marked = marked.view(tokens.shape) + log_size.unsqueeze(1) * self.size_weight
        if threshold:
            marked = marked * keep_mask(chunk, tokens.shape[1], key, threshold).to(tokens)
        return marked


def keep_mask(chunk: TokenChunk, width: int, key: int, threshold: int) -> Tensor:
    """(T, d) float32: 0 where dropped, 1 / (share kept) elsewhere. The mask that the kernels apply."""
    ones = np.ones((len(chunk) * chunk.length, width), np.float32)
    mark_gradients(ones, chunk.node_ids.cpu().numpy(), np.uint64(key), threshold, 0, len(chunk))
    return torch.from_numpy(ones)


@njit(inline="always")
def _drop(row, key, threshold, scale):
    """Drop entries of `row` with probability threshold / 2**16 and scale the others; 16 bits of a draw each."""
    bits = np.uint64(0)
    for j in range(row.size):
        if j % 4 == 0:
            bits = child_key(key, np.uint64(j >> 2))
        row[j] = row[j] * scale if (bits & _LOW_16) >= threshold else 0
        bits >>= _S16


@njit(cache=True, nogil=True)
def mark_outputs(tokens, level, size_weight, log_size, node_ids, key, threshold, first, last):
    """Add the marks to the tokens of nodes first..last-1, and drop."""
    length, width = level.shape
    scale = tokens.dtype.type(65536.0 / (65536.0 - threshold))
    for b in range(first, last):
        node_key = child_key(key, np.uint64(node_ids[b]))
        for position in range(length):
            t = b * length + position
            row, at_level = tokens[t], level[position]
            for j in range(width):
                row[j] += at_level[j] + log_size[t] * size_weight[j]
            if threshold > 0:
                _drop(row, child_key(node_key, np.uint64(position)), np.uint64(threshold), scale)


@njit(cache=True, nogil=True)
def mark_gradients(grad, node_ids, key, threshold, first, last):
    """Turn the gradient of the marked tokens of nodes first..last-1 into that of the tokens, in place."""
    length = grad.shape[0] // max(node_ids.size, 1)
    scale = grad.dtype.type(65536.0 / (65536.0 - threshold))
    for b in range(first, last):
        node_key = child_key(key, np.uint64(node_ids[b]))
        for position in range(length):
            _drop(grad[b * length + position], child_key(node_key, np.uint64(position)), np.uint64(threshold), scale)


class MarkTokens(torch.autograd.Function):
    """Autograd node around the kernels."""

    @staticmethod
    def forward(
        ctx: Any, tokens: Tensor, level: Tensor, size_weight: Tensor, log_size: Tensor, node_ids: Tensor,
        key: int, threshold: int,
    ) -> Tensor:  # fmt: skip
        ctx.mark_dirty(tokens)
        arrays = [x.detach().numpy() for x in (tokens, level.contiguous(), size_weight, log_size, node_ids)]
        run_tasks(lambda task: mark_outputs(*arrays, np.uint64(key), threshold, *task), node_ranges(len(node_ids)))
        ctx.save_for_backward(log_size, node_ids)
        ctx.rest = (key, threshold, level.shape[0])
        return tokens

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        log_size, node_ids = ctx.saved_tensors
        key, threshold, length = ctx.rest
        if threshold:
            grad = grad.contiguous().clone()
            arrays = (grad.numpy(), node_ids.numpy())
            run_tasks(
                lambda task: mark_gradients(*arrays, np.uint64(key), threshold, *task), node_ranges(len(node_ids))
            )
        return (grad, grad.view(-1, length, grad.shape[1]).sum(0), log_size @ grad, None, None, None, None)


def node_ranges(nodes: int) -> list[tuple[int, int]]:
    return [(b, min(b + NODES_PER_TASK, nodes)) for b in range(0, nodes, NODES_PER_TASK)]
