"""A BiMamba layer beside other work: two threads on a machine where one core is busy, against one thread alone.

The ideal is one thread's time, because one core is left. Two trainings at once, two threads each, against one after the
other. And GatedGCN's messages against PyG's layer.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gmn_train.model.encoders.gatedgcn import gated_messages
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.message_passing.branches import Neighbourhood, make_branch
from gmn_train.model.message_passing.edge_states import EdgeStates
from gmn_train.settings.model_settings import ModelConfig
from tests.benchmarks.timing import Row, best_seconds, side_by_side
from tests.benchmarks.train.bench_bimamba import WIDTH, train

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


def train_many(steps: int = 60) -> float:
    """Seconds of many steps on two threads, after one that loads the kernels and a pause for the other process."""
    with threads(2):
        layer = BiMamba(WIDTH, expand=1)
        work = train(layer, list(layer.parameters()))
        work()
        time.sleep(max(0.0, float(sys.argv[1]) - time.time()))
        begun = time.perf_counter()
        for _ in range(steps):
            work()
        return time.perf_counter() - begun


def seconds_of_runs(count: int) -> float:
    """Seconds until `count` runs have ended that begin at the same time, each in a process of its own."""
    begin = str(time.time() + 30)
    command = [sys.executable, "-m", "tests.benchmarks.train.bench_load", begin]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return max(float(run.communicate()[0]) for run in runs)


def twice_row() -> Row:
    alone = seconds_of_runs(1)
    return Row("60 steps of a BiMamba layer", "two runs at once", "one after the other", seconds_of_runs(2), 2 * alone)


def gated_row(width: int = 96) -> Row:
    """Edges with one of a few features, as bonds have."""
    x = torch.randn(NODES, width, requires_grad=True)
    near = Neighbourhood(torch.randint(NODES, (2, DEGREE * NODES)), NODES, False)
    branch = make_branch(ModelConfig(width=width, mpnn="gatedgcn"), True)
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
    return [load_row(), twice_row(), gated_row()]


if __name__ == "__main__":
    print(train_many())
