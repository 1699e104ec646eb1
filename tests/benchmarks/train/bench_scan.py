"""Selective scan, forward and backward, against mamba's reference loop and mambapy's parallel scan on the CPU."""

import threading
from collections.abc import Callable

import psutil
import torch
from torch import Tensor

from gmn_train.model.scan import selective_scan
from tests.benchmarks.timing import Row, best_seconds, side_by_side

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


PEERS = {mamba_loop: "mamba's reference loop", mambapy_scan: "mambapy pscan"}


def train(scan: Callable[..., Tensor], inputs: list[Tensor]) -> Callable[[], object]:
    """Forward and backward as one piece of work."""
    weights = torch.ones_like(inputs[0])
    return lambda: torch.autograd.grad(scan(*inputs), inputs, weights)


def rows() -> list[Row]:
    """Our scan and each peer, forward and backward."""
    table = []
    for shape, peers in ((BIG, (mamba_loop, mambapy_scan)), (LONG, (mambapy_scan,))):
        inputs = make_inputs(*shape)
        work = "scan fwd+bwd, batch {}, length {}, {} channels, {} states".format(*shape)
        for peer in peers:
            both = side_by_side(train(selective_scan, inputs), train(peer, inputs), times=10 if shape == LONG else 3)
            table.append(Row(work, "selective_scan", PEERS[peer], *both))
    return table


def peak_growth(work: Callable[[], object]) -> int:
    """How far resident memory rises above its start while `work` runs, in bytes, sampled every few milliseconds."""
    process, done = psutil.Process(), threading.Event()
    before = process.memory_info().rss
    seen = [before]

    def watch() -> None:
        while not done.wait(0.003):
            seen.append(process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return max(seen) - before


def lines() -> list[str]:
    """Time and memory of one sequence of up to a million steps."""
    train(selective_scan, make_inputs(1, 100, 64, 16))()  # load the kernels
    found = []
    for length in (10_000, 100_000, 1_000_000):
        inputs = make_inputs(1, length, 64, 16)
        grown = peak_growth(train(selective_scan, inputs)) / sum(x.nbytes for x in inputs)
        best = best_seconds(train(selective_scan, inputs))
        found.append(
            f"scan of one sequence, length {length:,}, 64 channels: {best:.4f} s, {best / length * 1e6:.2f} µs a step, "
            f"memory at most {grown:.1f} times its inputs"
        )
    return found


if __name__ == "__main__":
    for row in rows():
        print(*row[:3], *(f"{s:.3f} s" for s in row[3:]), f"{row.peer_seconds / row.ours_seconds:.0f}x", sep=" | ")
    print(*lines(), sep="\n")
