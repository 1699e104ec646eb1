"""A whole BiMamba layer, forward and backward, against mambapy's blocks; and where the layer's time goes."""

from collections import defaultdict
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, silu
from torch.profiler import ProfilerActivity, profile

from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.layers.conv import causal_conv_silu
from tests.benchmarks.timing import Row, side_by_side

BATCH, LENGTH, WIDTH = 2048, 17, 64  # tokens 8/1/2 of 2048 nodes
PARTS = {
    "TileLayer": "BiMamba layers on tiles",
    "GatedSums": "gated messages",
    "FusedScan": "scan with softplus and gate",
    "FusedConv": "convolution",
    "aten::mm": "matrix products",
    "aten::addmm": "matrix products",
    "aten::bmm": "matrix products",
    "aten::native_layer_norm": "layer norm",
    "SparseProduct": "sparse products",
    "MeanPool": "means over tokens",
    "LocalSum": "messages inside tokens",
    "MarkTokens": "marks of tokens",
    "PermuteRows": "putting nodes in order",
}


class MambapyPair(nn.Module):
    """Two of mambapy's blocks, one on the reversed batch, in the same pre-norm residual."""

    def __init__(self, expand: int) -> None:
        super().__init__()
        from mambapy.mamba import MambaBlock, MambaConfig

        config = MambaConfig(d_model=WIDTH, n_layers=1, expand_factor=expand)
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.blocks = nn.ModuleList([MambaBlock(config), MambaBlock(config)])

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x)
        forth, back = self.blocks[0](normed), self.blocks[1](normed.flip(1)).flip(1)
        y: Tensor = x + self.out(forth + back)
        return y


def train(layer: Callable[..., Tensor], parameters: list[Tensor], **options: bool) -> Callable[[], object]:
    """Forward and backward as one piece of work."""
    x = torch.randn(BATCH, LENGTH, WIDTH, generator=torch.Generator().manual_seed(0), requires_grad=True)

    def run() -> object:
        y = layer(x, **options)
        return torch.autograd.grad(y, [x, *parameters], torch.ones_like(y), allow_unused=True)

    return run


def in_bf16(layer: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
            return layer(x)

    return run


def conv_row() -> Row:
    weight, bias = torch.randn(WIDTH, 4, requires_grad=True), torch.zeros(WIDTH, requires_grad=True)

    def peer(x: Tensor) -> Tensor:
        padded = conv1d(x.transpose(1, 2), weight.unsqueeze(1), bias, padding=3, groups=WIDTH)
        return silu(padded[..., :LENGTH]).transpose(1, 2)

    seconds = side_by_side(
        train(lambda x: causal_conv_silu(x, weight, bias), [weight, bias]), train(peer, [weight, bias])
    )
    work = f"causal conv + SiLU fwd+bwd, batch {BATCH}, length {LENGTH}, {WIDTH} channels"
    return Row(work, "causal_conv_silu", "torch conv1d + silu", *seconds)


def rows() -> list[Row]:
    """The layer at expand 1 and 2 against mambapy's, and against itself with the last row only."""
    table = [conv_row()]
    for expand in (1, 2):
        work = f"BiMamba layer fwd+bwd, batch {BATCH}, length {LENGTH}, width {WIDTH}, expand {expand}"
        ours, theirs = BiMamba(WIDTH, expand=expand), MambapyPair(expand)
        full = train(ours, list(ours.parameters()))
        peer = train(theirs, list(theirs.parameters()))
        last = train(ours, list(ours.parameters()), only_last=True)
        table.append(Row(work, "BiMamba", "two mambapy blocks", *side_by_side(full, peer)))
        table.append(Row(work, "BiMamba, only_last", "BiMamba", *side_by_side(last, full, times=5)))
        half = train(in_bf16(ours), list(ours.parameters()))
        table.append(Row(work, "BiMamba, bf16", "BiMamba, float32", *side_by_side(half, full, times=10)))
    table.append(states_row())
    return table


def states_row(batch: int = 12_000, length: int = 3) -> Row:
    """Fewer states, where sequences are too short to need many."""
    x = torch.randn(batch, length, WIDTH, generator=torch.Generator().manual_seed(0), requires_grad=True)

    def work(states: int) -> Callable[[], object]:
        layer = BiMamba(WIDTH, expand=1, states=states)
        wanted = [x, *layer.parameters()]
        return lambda: torch.autograd.grad(layer(x, only_last=True).sum(), wanted, allow_unused=True)

    seconds = side_by_side(work(8), work(16), times=5)
    name = f"BiMamba layer fwd+bwd, batch {batch:,}, length {length}, last row only"
    return Row(name, "8 states", "16 states", *seconds)


def breakdown(expand: int, repeats: int = 5) -> dict[str, float]:
    """Seconds per part of one forward and backward pass."""
    layer = BiMamba(WIDTH, expand=expand)
    run = train(layer, list(layer.parameters()))
    run()
    return {name: s / repeats for name, s in profile_parts(run, repeats).items()}


def profile_parts(work: Callable[[], object], repeats: int = 1) -> dict[str, float]:
    """Seconds by part, largest first; each operation counts its own time only."""
    with profile(activities=[ProfilerActivity.CPU]) as record:
        for _ in range(repeats):
            work()
    parts: dict[str, float] = defaultdict(float)
    for event in record.key_averages():
        name = event.key.removesuffix("_backward").removesuffix("Backward")
        parts[PARTS.get(name, "additions, copies and the rest")] += event.self_cpu_time_total / 1e6
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def shares_text(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {100 * s / sum(parts.values()):.0f}%" for name, s in parts.items())


def lines() -> list[str]:
    """The breakdown, largest part first."""
    found = []
    for expand in (1, 2):
        parts = breakdown(expand)
        found.append(f"BiMamba layer at expand {expand}, {1e3 * sum(parts.values()):.0f} ms: {shares_text(parts)}")
    return found


if __name__ == "__main__":
    for row in rows():
        print(*row[:3], *(f"{s:.3f} s" for s in row[3:]), f"{row.peer_seconds / row.ours_seconds:.1f}x", sep=" | ")
    print(*lines(), sep="\n")
