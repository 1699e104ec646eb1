"""Selective scan, forward and backward, against mamba's reference loop and mambapy's parallel scan on the CPU.

    python -m tests.benchmarks.bench_scan

Prints a table row per peer, then time and memory for lengths up to a million.
"""

import time
from collections.abc import Callable

import psutil
import torch
from torch import Tensor

from gmn_train.model.scan import selective_scan

Row = tuple[str, str, str, float, float]
BIG = (2048, 17, 128, 16)  # batch, length, channels, states: tokens of a batch of nodes
LONG = (1, 8192, 128, 16)  # nodes of one graph


def make_inputs(batch: int, length: int, channels: int, states: int) -> list[Tensor]:
    """u, delta, A, B, C, D as a freshly initialised layer has them."""
    rng = torch.Generator().manual_seed(0)
    delta = torch.exp(torch.rand(batch, length, channels, generator=rng) * 4.6 - 6.9)  # 0.001 to 0.1
    A = -torch.arange(1.0, states + 1).repeat(channels, 1)
    u, B, C = (torch.randn(batch, length, k, generator=rng) for k in (channels, states, states))
    return [x.requires_grad_() for x in (u, delta, A, B, C, torch.ones(channels))]


def mamba_loop(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor) -> Tensor:
    """What mamba-ssm does without CUDA: all decays and inputs at once, then a Python loop over time."""
    decay = torch.exp(torch.einsum("bld,dn->bldn", delta, A))  # (batch, length, channels, states)
    fed = torch.einsum("bld,bln,bld->bldn", delta, B, u)
    h = u.new_zeros(len(u), *A.shape)
    outputs = []
    for t in range(u.shape[1]):
        h = decay[:, t] * h + fed[:, t]
        outputs.append(torch.einsum("bdn,bn->bd", h, C[:, t]))
    return torch.stack(outputs, 1) + u * D


def mambapy_scan(*inputs: Tensor) -> Tensor:
    """mambapy's parallel scan, which is its default in training."""
    from mambapy.mamba import MambaBlock, MambaConfig

    y: Tensor = MambaBlock(MambaConfig(d_model=16, n_layers=1)).selective_scan(*inputs)
    return y


def seconds(scan: Callable[..., Tensor], inputs: list[Tensor], repeats: int) -> float:
    """Best time of forward and backward."""
    weights = torch.ones_like(inputs[0])
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        torch.autograd.grad(scan(*inputs), inputs, weights)
        best = min(best, time.perf_counter() - start)
    return best


def rows() -> list[Row]:
    """(work, ours, peer, our seconds, peer's seconds), each pair measured in turn."""
    table = []
    for shape, peers in ((BIG, (mamba_loop, mambapy_scan)), (LONG, (mambapy_scan,))):
        inputs = make_inputs(*shape)
        seconds(selective_scan, inputs, 2)  # load or compile the kernels
        for peer in peers:
            ours = seconds(selective_scan, inputs, 5)
            theirs = seconds(peer, inputs, 2)
            ours = min(ours, seconds(selective_scan, inputs, 5))
            name = "scan fwd+bwd, batch {} length {} channels {} states {}".format(*shape)
            table.append((name, "numba", peer.__name__, ours, theirs))
    return table


def lengths(up_to: int = 1_000_000, channels: int = 64, states: int = 16) -> list[tuple[int, float, float]]:
    """(length, seconds, growth of resident memory in bytes over inputs) for one sequence."""
    table = []
    length = 1000
    while length <= up_to:
        inputs = make_inputs(1, length, channels, states)
        before = psutil.Process().memory_info().rss
        peak = 0

        def watched(*args: Tensor) -> Tensor:
            nonlocal peak
            y = selective_scan(*args)
            peak = psutil.Process().memory_info().rss
            return y

        best = seconds(watched, inputs, 3)
        peak = max(peak, psutil.Process().memory_info().rss)
        table.append((length, best, (peak - before) / sum(x.nbytes for x in inputs)))
        length *= 10
    return table


if __name__ == "__main__":
    for work, ours, peer, our_time, their_time in rows():
        print(f"{work}: {ours} {our_time:.3f} s, {peer} {their_time:.2f} s, {their_time / our_time:.0f}x")
    for length, best, memory in lengths():
        print(f"length {length}: {best:.4f} s, {best / length * 1e6:.2f} µs a step, memory {memory:.1f} x inputs")
