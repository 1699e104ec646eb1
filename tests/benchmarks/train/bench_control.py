"""GMN against its own control, the same model without tokens and scans: a dense graph, and molecules of Peptides' size.

Both are generated, so that the benchmark needs no download. Core-seconds are the process's CPU time.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from gmn_pipeline import Graph, Task, TokenSettings, TokenStore
from gmn_train.model import InputSource, ModelConfig, whole_inputs
from gmn_train.model.frame import make_graph_model
from tests.benchmarks.timing import Row, side_by_side
from tests.train.model_stores import model_store

DENSE = {"width": 64, "node_layers": 4, "dropout": 0.5}
DEFAULTS = {"node_scan": False, "states": 8, "token_blocks": 2, "head_reads": "all", "dropout": 0.2}
"""What the rule of defaults chooses for nodes of one graph with few feature columns: settings/rule.py."""
PEPTIDES = {"width": 96, "node_layers": 4, "dropout": 0.1, "mpnn": "gatedgcn", "feature_mask": 0.0}
GRAPHS, ATOMS, STEPS = 128, 151, 85
"""A batch of Peptides-func, nodes of a molecule, and batches of an epoch."""
_core_seconds: dict[str, tuple[float, float, float]] = {}
"""Of GMN, its control, and GMN with bf16."""


def dense_graph(nodes: int = 12_000, edges: int = 500_000) -> Graph:
    """Skewed degrees, and half of the edges inside communities, as graphs of people have."""
    rng = np.random.default_rng(0)
    weights = (np.arange(nodes) + 30.0) ** -0.6
    a, b = (rng.choice(nodes, edges, p=weights / weights.sum()) for _ in range(2))
    near = rng.random(edges) < 0.5
    b[near] = (a[near] // 200 * 200 + rng.integers(0, 200, int(near.sum()))) % nodes
    y = rng.integers(0, 2, nodes)
    x = rng.normal(size=(nodes, 10)).astype(np.float32)
    return Graph.from_edges(np.stack([a, b], 1), nodes, x=x, y=y, task=Task.of("node", "binary", 2))


def molecules() -> Graph:
    """Chains with side groups and some rings, with atoms and bonds of a few kinds."""
    rng = np.random.default_rng(0)
    first = np.repeat(np.arange(GRAPHS) * ATOMS, ATOMS - 1)
    child = np.tile(np.arange(1, ATOMS), GRAPHS)
    edges = np.stack([first + child, first + np.maximum(child - rng.integers(1, 4, child.size), 0)], 1)
    rings = edges[::25] - np.array([0, 2])
    edges = np.concatenate([edges, rings[(rings[:, 1] // ATOMS == rings[:, 0] // ATOMS) & (rings[:, 1] >= 0)]])
    kinds = (17, 3, 7, 7, 5, 1, 6, 2, 2)
    return Graph.from_edges(
        edges, GRAPHS * ATOMS, x=np.stack([rng.integers(0, k, GRAPHS * ATOMS) for k in kinds], 1).astype(np.int32),
        x_categories=kinds, edge_attr=np.stack([rng.integers(0, k, len(edges)) for k in (4, 1, 2)], 1).astype(np.int32),
        edge_categories=(4, 1, 2), graph_ptr=np.arange(GRAPHS + 1) * ATOMS, y=rng.integers(0, 2, (GRAPHS, 10)),
        task=Task.of("graph", "multilabel", 10),
    )  # fmt: skip


def training_step(
    store: TokenStore, name: str, settings: dict[str, object], *, half: bool = False
) -> Callable[[], object]:
    if name == "mpnn":  # which has no tokens and no scan to set
        settings = {key: value for key, value in settings.items() if key not in ("token_blocks", "node_scan")}
    config = ModelConfig.of(name, **settings)
    source = InputSource(store.view(), config)
    model = make_graph_model(config, source.facts).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    y = torch.from_numpy(store.graph.y.copy()).float()

    def run() -> object:
        with torch.autocast("cpu", torch.bfloat16, enabled=half, cache_enabled=False):
            logits = model(whole_inputs(source, epoch=0)).logits
        optimiser.zero_grad()
        binary_cross_entropy_with_logits(logits, y.view(logits.shape)).backward()
        return optimiser.step()

    return run


def core_seconds(work: Callable[[], object], times: int = 3) -> float:
    """CPU time of the cheapest of several runs."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


CASES = {
    "dense graph, 12,000 nodes, 500,000 edges, 2/16/1": (dense_graph, TokenSettings(2, 16, 1), DENSE, 0),
    "the same graph, settings by the rule of defaults": (dense_graph, TokenSettings(2, 16, 1), DENSE | DEFAULTS, 0),
    "128 molecules of Peptides' size, 4/4/1": (molecules, TokenSettings(4, 4, 1), PEPTIDES, 16),
}


def rows() -> list[Row]:
    """A training step of each, reading its tokens included."""
    found = []
    for work, (graph, tokens, settings, rwse) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            store = model_store(
                Path(folder) / "store.zarr", graph(), tokens, random_walk=rwse, orderings=("degree",), block_size=4096
            )
            ours, control = (training_step(store, name, settings) for name in ("gmn", "mpnn"))
            half = training_step(store, "gmn", settings, half=True)
            half()
            found.append(Row(f"training step, {work}", "GMN", "its control, mpnn", *side_by_side(ours, control)))
            _core_seconds[work] = core_seconds(ours), core_seconds(control), core_seconds(half)
    return found


def lines() -> list[str]:
    dense, defaults, molecules = _core_seconds.values()
    found = [
        f"{name}: GMN {ours:.2f} core-seconds a step, {ours / control:.1f} times its control's; with bf16 {half:.2f}, "
        f"{half / control:.1f} times (mark: 4)"
        for name, (ours, control, half) in (("dense graph", dense), ("the same by the rule of defaults", defaults))
    ]
    ours, control, half = (STEPS * seconds for seconds in molecules)
    return [
        *found,
        f"molecules, times {STEPS} steps of an epoch: GMN {ours:.0f} core-seconds (mark: 220), with bf16 {half:.0f}; "
        f"control {control:.0f} (mark: 40)",
    ]
