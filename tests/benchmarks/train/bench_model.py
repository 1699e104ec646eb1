"""One training epoch of GMN on a Minesweeper grid against PyG's GPSConv with full attention, and how both grow.

`python -m tests.benchmarks.train.bench_model` prints the rows; `... --plot FILE.png` measures 10,000 to 80,000 nodes,
each in a process of its own, and draws seconds and peak memory.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch_geometric.nn import GCNConv, GPSConv

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.console.machine import peak_memory
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.generated.minesweeper_grid import load_minesweeper_grid
from gmn_train.data.inputs.record import Neighbourhood
from gmn_train.data.token_chunks import TokenChunk
from gmn_train.model import GMN, InputSource, ModelConfig, whole_inputs
from gmn_train.model.encoders.pooling import pool_tokens
from gmn_train.model.message_passing.branches import GcnBranch
from tests.benchmarks.timing import Row, best_seconds, side_by_side
from tests.train.model_stores import model_store

TOKENS = TokenSettings(4, 4, 2)
WIDTH, LAYERS = 64, 4
CHUNK_NODES = 10_000
SIZES = (10_000, 20_000, 40_000, 80_000)
GPS_SIZES = (10_000, 20_000, 40_000)  # beyond, an epoch takes minutes
MODELS: dict[str, dict[str, object]] = {
    "input": {"token_blocks": "input", "encoder": "mean", "token_layers": 2},
    "between": {"token_blocks": "between", "encoder": "local", "token_layers": 1},
}


def grid_store(nodes: int, folder: str) -> TokenStore:
    graph = load_minesweeper_grid(DatasetOptions(nodes=nodes))
    return model_store(Path(folder) / f"grid-{nodes}.zarr", graph, TOKENS, block_size=4096)


def gmn_epoch(store: TokenStore, tokens: str) -> Callable[[], object]:
    """A training step on the whole graph, reading and drawing its tokens included."""
    config = ModelConfig(width=WIDTH, node_layers=LAYERS, **MODELS[tokens])  # type: ignore[arg-type]
    source = InputSource(store.view(), config)
    model = GMN(config, source.facts)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    y = torch.from_numpy(store.graph.y.copy()).float()
    epoch = 0

    def run() -> object:
        nonlocal epoch
        inputs = whole_inputs(source, epoch=epoch, chunk_nodes=CHUNK_NODES)
        epoch += 1
        optimiser.zero_grad()
        binary_cross_entropy_with_logits(model(inputs).logits[:, 0], y).backward()
        return optimiser.step()

    return run


class GPS(nn.Module):
    """PyG's GPSConv with a GCN and full attention, at the same depth and width."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.project = nn.Linear(features, WIDTH)
        convs = [GPSConv(WIDTH, GCNConv(WIDTH, WIDTH), heads=4, dropout=0.2) for _ in range(LAYERS)]
        self.layers = nn.ModuleList(convs)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        h = self.project(x)
        for layer in self.layers:
            h = layer(h, edge_index)
        out: torch.Tensor = self.head(h)[:, 0]
        return out


def gps_epoch(store: TokenStore) -> Callable[[], object]:
    g = store.graph
    x, y = torch.from_numpy(g.x.copy()), torch.from_numpy(g.y.copy()).float()
    edge_index = torch.stack([torch.from_numpy(a.astype("int64")) for a in (g.slot_sources, g.indices)])
    model = GPS(x.shape[1])
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def run() -> object:
        optimiser.zero_grad()
        binary_cross_entropy_with_logits(model(x, edge_index), y).backward()
        return optimiser.step()

    return run


def rows() -> list[Row]:
    """(work, ours, peer, our seconds, the peer's)"""
    with tempfile.TemporaryDirectory() as folder:
        small, double = (grid_store(n, folder) for n in SIZES[:2])
        found = []
        for tokens, work in (("input", "2 token + 4 node layers"), ("between", "3 token blocks + 4 node layers")):
            ours, peer = side_by_side(gmn_epoch(small, tokens), gps_epoch(small), times=3)
            found.append(Row(f"epoch, 10,000 nodes, {work}", f"GMN, tokens {tokens}", "GPSConv x 4", ours, peer))
        ours, peer = side_by_side(gmn_epoch(double, "input"), gps_epoch(double), times=1)
        found.append(Row("epoch, 20,000 nodes", "GMN, tokens input", "GPSConv x 4", ours, peer))
        for nodes in SIZES[2:]:
            ours = best_seconds(gmn_epoch(grid_store(nodes, folder), "input"), times=1)
            found.append(Row(f"epoch, {nodes:,} nodes, by chunks", "GMN, tokens input", "", ours, float("nan")))
        return [*found, *part_rows(small)]


def part_rows(store: TokenStore) -> list[Row]:
    """The parts that were made faster than what they replace, forward and backward."""
    g = store.graph
    batch = store.view().gather(range(store.num_nodes), parts=())
    chunk = TokenChunk.of(batch, batch.nodes, None, rows=store.num_nodes, directed=False)
    x = torch.randn(store.num_nodes, WIDTH, requires_grad=True)
    token = torch.repeat_interleave(torch.arange(len(chunk.node_ptr) - 1), chunk.node_ptr.diff())

    def scatter() -> torch.Tensor:
        summed = x.new_zeros(len(chunk.node_ptr) - 1, WIDTH).index_add(0, token, x[chunk.nodes.long()])
        return summed / chunk.node_ptr.diff().unsqueeze(1)

    edge_index = torch.stack([torch.from_numpy(a.astype("int64")) for a in (g.slot_sources, g.indices)])
    near, ours, theirs = (
        Neighbourhood(edge_index, len(x), True),
        GcnBranch(WIDTH, False),
        GCNConv(WIDTH, WIDTH, cached=True),
    )
    pooling = side_by_side(lambda: pool_tokens(x, chunk).sum().backward(), lambda: scatter().sum().backward())
    gcn = side_by_side(lambda: ours(x, near, None).sum().backward(), lambda: theirs(x, edge_index).sum().backward())
    return [
        Row("mean over 90,000 tokens, fwd + bwd", "pool_tokens", "gather and scatter", *pooling),
        Row("GCN on 10,000 nodes, fwd + bwd", "GcnBranch", "GCNConv, cached", *gcn),
    ]


def measure(model: str, nodes: int) -> dict[str, float]:
    """Seconds of an epoch and peak memory in GB, in a new process."""
    command = [sys.executable, "-m", "tests.benchmarks.train.bench_model", "--one", model, str(nodes)]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def measure_here(model: str, nodes: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        store = grid_store(nodes, folder)
        run = gps_epoch(store) if model == "gps" else gmn_epoch(store, model)
        seconds = best_seconds(run, times=2 if model == "gps" and nodes > SIZES[0] else 3)
    return {"seconds": seconds, "gigabytes": peak_memory() / 2**30}


LABELS = {
    "input": "GMN, tokens of the input",
    "between": "GMN, tokens between layers",
    "gps": "GPSConv, full attention",
}


def plot(file: Path) -> None:
    """Measure every model at every size, each in a process of its own, and draw it."""
    points = {}
    for model in LABELS:
        points[model] = {n: measure(model, n) for n in (GPS_SIZES if model == "gps" else SIZES)}
        print(model, json.dumps(points[model]), flush=True)
    draw(points, file)


def draw(points: dict[str, dict[int, dict[str, float]]], file: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import ScalarFormatter

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, what, name in zip(axes, ("seconds", "gigabytes"), ("seconds per epoch", "peak memory, GB"), strict=True):
        for model, found in points.items():
            axis.plot([*found], [p[what] for p in found.values()], "o-", label=LABELS[model])
        axis.set(xscale="log", yscale="log", xlabel="nodes of the grid", ylabel=name)
        axis.set_xticks(SIZES, [f"{n // 1000}k" for n in SIZES])
        axis.set_yticks((1, 2, 5, 10, 20, 50) if what == "seconds" else (1, 2, 3, 4))
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[1].legend(frameon=False, loc="upper left", fontsize=8)
    figure.suptitle("One training epoch, 4 layers of width 64, tokens 4/4/2, two cores", fontsize=11)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=140)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, help="draw the scaling to this PNG")
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "NODES"), help="measure one model at one size")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure_here(arguments.one[0], int(arguments.one[1]))))
    elif arguments.plot:
        plot(arguments.plot)
    else:
        for row in rows():
            print(f"{row.work}: {row.ours} {row.ours_seconds:.3f} s, {row.peer or 'no peer'} {row.peer_seconds:.3f} s")
