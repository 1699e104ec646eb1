"""Small runs for tests: settings resolved for a store, training in a folder, and graphs to train on."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from gmn_pipeline import Graph, Task, TokenStore
from gmn_pipeline.store.files.manifest_file import read_manifest
from gmn_train.runs.checkpoint import Checkpoints
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.watching.display import Watcher
from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.request import resolve
from gmn_train.settings.run_settings import TrainConfig
from gmn_train.train import Training, train

SMALL = ModelConfig(width=16, node_layers=2, states=4, dropout=0.1)


def settings_for(store: TokenStore | Path, **settings: Any) -> TrainConfig:
    """Settings of a run with nothing left to choose; the small model unless another is given."""
    path = store.path if isinstance(store, TokenStore) else store
    return resolve(TrainConfig(**{"store": path, "model": SMALL, **settings}), read_manifest(path))


def prepare(config: TrainConfig) -> Training:
    return Training.prepare(config, TokenStore.open(config.store))


def train_in(config: TrainConfig, path: Path, watcher: Watcher | None = None, *, anew: bool = True) -> dict[str, Any]:
    """The summary of a run in `path`: from the beginning, or from where it stopped."""
    folder = RunFolder(path)
    if anew:
        folder.create(config)
    return train(config, TokenStore.open(config.store), folder, watcher or Watcher())


def last_weights(config: TrainConfig, path: Path) -> dict[str, torch.Tensor]:
    state = Checkpoints(RunFolder(path), config).load()
    assert state is not None
    weights: dict[str, torch.Tensor] = state["model"]
    return weights


class DieAt(Watcher):
    """Ends the run, as Ctrl-C does, before its step number `steps`."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self, epoch: int, step: int, steps: int) -> None:  # noqa: ARG002
        if step == steps:  # an evaluation
            return
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1


def many_graphs(item: str = "graph", count: int = 24) -> Graph:
    """Rings and paths to tell apart, or their nodes by degree."""
    edges, sizes = [], []
    for g in range(count):
        n, first = 5 + g % 4, sum(sizes)
        edges += [[first + i, first + i + 1] for i in range(n - 1)] + ([[first + n - 1, first]] if g % 2 else [])
        sizes.append(n)
    items = count if item == "graph" else sum(sizes)
    y = np.arange(count) % 2 if item == "graph" else np.concatenate([np.arange(n) == 0 for n in sizes]).astype(int)
    splits = np.tile([1, 1, 2, 3], items)[:items]
    if item == "node":
        splits = np.repeat(np.tile([1, 1, 2, 3], count)[:count], sizes)
    return Graph.from_edges(
        np.array(edges), sum(sizes), x=np.ones((sum(sizes), 1)), y=y, splits=splits,
        graph_ptr=np.concatenate([[0], np.cumsum(sizes)]), task=Task.of(item, "multiclass", 2),
    )  # fmt: skip
