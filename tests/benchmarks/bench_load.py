"""A BiMamba layer beside other work: two threads on a machine where one core is busy, against one thread alone.

The ideal is one thread's time, because one core is left. And GatedGCN's messages against PyG's layer.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gmn_train.model.encoders.gatedgcn import gated_messages
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.layers.branches import Neighbourhood, make_branch
from gmn_train.model.layers.edge_states import EdgeStates
from tests.benchmarks.bench_bimamba import WIDTH, train
from tests.benchmarks.timing import Row, best_seconds, side_by_side

NODES, DEGREE, KINDS = 19_000, 2, 20  # 128 peptides


@contextmanager
def busy_core() -> Iterator[None]:
    """Another process that never waits."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def load_row() -> Row:
    layer = BiMamba(WIDTH, expand=1)
    work = train(layer, list(layer.parameters()))
    with threads(1):
        alone = best_seconds(work, 10)
    with threads(2), busy_core():
        beside = best_seconds(work, 10)
    return Row("BiMamba layer fwd+bwd", "2 threads beside a busy core", "1 thread alone", beside, alone)


def gated_row(width: int = 96) -> Row:
    """Edges with one of a few features, as bonds have."""
    x = torch.randn(NODES, width, requires_grad=True)
    near = Neighbourhood(torch.randint(NODES, (2, DEGREE * NODES)), NODES, False)
    branch = make_branch("gatedgcn", width, True)
    assert branch is not None
    states = EdgeStates(torch.randn(KINDS, width), torch.randint(KINDS, (DEGREE * NODES,)))
    all_states = states.of_all()
    wanted = [x, *branch.parameters()]

    def ours() -> object:
        return torch.autograd.grad(branch(x, near, states).sum(), wanted)

    def peer() -> object:
        return torch.autograd.grad(
            gated_messages(branch.convolution, x, near.edge_index, all_states).sum(),  # type: ignore[arg-type]
            wanted,
        )

    work = f"GatedGCN with edge features fwd+bwd, {NODES:,} nodes, {DEGREE * NODES:,} edges, width {width}"
    return Row(work, "GatedBranch", "PyG ResGatedGraphConv", *side_by_side(ours, peer, 5))


def rows() -> list[Row]:
    return [load_row(), gated_row()]
