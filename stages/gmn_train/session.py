"""A store opened for training: which units a step takes, what they carry, and how they are read.

A *unit* is what a step is made of: nothing (the whole graph at once, `full`), nodes of one graph (`batch`), or graphs.
An *item* is what carries a label: a node, a graph or a pair.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.errors import ConfigError, TrainError
from gmn_pipeline.graph import TEST, TRAIN, VAL
from gmn_pipeline.store.reader import TokenStore
from gmn_pipeline.task import Task
from gmn_pipeline.types import IntArray
from gmn_train.batches import Step, in_steps, plan_epoch, split_items
from gmn_train.model.inputs import InputSource, ModelInputs, batch_inputs, whole_inputs
from gmn_train.precision import Precision
from gmn_train.train_config import TrainConfig

PARTS = {"train": TRAIN, "val": VAL, "test": TEST}
FLOATS_PER_CHANNEL = 40
"""Activations that a token's scan keeps for the backward pass, per channel and layer; measured at width 64."""

Mode = Literal["full", "batch", "graphs"]


@dataclass(frozen=True)
class Loaded:
    """The inputs of one step, and what its output rows are."""

    inputs: ModelInputs
    items: IntArray
    """(rows,) the item of each row of logits."""
    y: Tensor | None
    """(rows, ...) labels."""


class Session:
    """The store at a run's settings."""

    def __init__(self, config: TrainConfig, *, need_labels: bool = True) -> None:
        """Raises StoreError, ConfigError (more than stored, no such split), TrainError (nothing to learn from)."""
        self.config = config
        self.store = TokenStore.open(config.store)
        self.view = self.store.view(config.m, config.M, config.s)
        self.source = InputSource(self.view, config.model, seed=config.seed)
        self.graph = self.source.graph
        _ = self.source.facts, self.source.ranks  # an encoding or ordering that is not there is told now
        task = self.graph.task
        if task is None or (need_labels and self.graph.y is None):
            raise TrainError(f"{config.store} has no labels; tokenize a dataset with labels and a task to train on")
        self.task: Task = task
        splits = self.graph.splits
        count = 0 if splits is None else len(splits)
        if config.split >= max(count, 1):
            raise ConfigError(f"split {config.split} does not exist; the store has splits 0..{count - 1}")
        if splits is None and need_labels:
            raise TrainError(f"{config.store} has no splits; give the dataset train, val and test items")
        self.items = {
            part: split_items(splits, config.split, code, self.graph.num_items) for part, code in PARTS.items()
        }
        if need_labels and len(self.items["train"]) == 0:
            raise TrainError(f"split {config.split} of {config.store} has no training items")
        self.precision: Precision = "float32"
        """Of matrix products; whoever makes the model sets what `choose_precision` says."""
        self.mode = self._choose_mode()
        self.chunk_nodes = self._choose_chunk()

    def _choose_mode(self) -> Mode:
        if self.graph.graph_ptr is not None:
            return "graphs"
        return "batch" if self.config.mode == "batch" else "full"

    def _choose_chunk(self) -> int | None:
        """Nodes whose token activations fit the memory budget; None where all do."""
        t, model = self.view.settings, self.config.model
        channels = max(model.token_layers, 1) * model.width * (1 + model.expand)
        per_node = t.sequence_length * channels * 4 * FLOATS_PER_CHANNEL
        fits = int(self.config.memory_budget * 1e9 / per_node)
        return None if fits >= self.graph.num_nodes else max(fits, 256)

    @property
    def keeps_tokens(self) -> bool:
        """Whether a whole graph's tokens may stay in memory between chunks."""
        manifest = self.store.manifest
        return (manifest.token_nodes * 8 + manifest.token_edges * 4) < self.config.memory_budget * 2.5e8

    def units(self, part: str) -> IntArray | None:
        """The units that hold items of one part; None in `full` mode."""
        items = self.items[part]
        if self.mode == "full":
            return None
        if self.mode == "batch" or self.task.level == "graph":
            return items
        return np.unique(self._graph_of_items(items))

    def _graph_of_items(self, items: IntArray) -> IntArray:
        nodes = items if self.graph.pairs is None else self.graph.pairs[items, 0]
        return np.searchsorted(self.source.graph_ptr, nodes, side="right") - 1

    def training_steps(self, epoch: int) -> list[Step]:
        """The steps of a training epoch, a pure function of the settings and the epoch."""
        units = self.units("train")
        if units is None:
            return [Step(0, None)]
        blocks = self.store.block_ptr if self.mode == "batch" else None
        return plan_epoch(units, self._step_size, self.config.seed, epoch, block_ptr=blocks)

    def evaluation_steps(self, part: str | None = None) -> list[Step]:
        """Steps that cover one part, or everything."""
        if self.mode == "full":
            return [Step(0, None)]
        everything = np.arange(self.graph.num_nodes if self.mode == "batch" else self.graph.num_graphs)
        units = everything if part is None else self.units(part)
        assert units is not None
        return in_steps(units, self._step_size)

    @property
    def _step_size(self) -> int:
        return self.config.batch_nodes if self.mode == "batch" else self.config.batch_size

    def load(self, step: Step, epoch: int | None) -> Loaded:
        """Read the inputs of one step; epoch None for evaluation."""
        pairs: IntArray | None = None
        items: IntArray | None = None
        if self.task.level == "link":
            assert self.graph.pairs is not None
            items = np.arange(len(self.graph.pairs))
            if step.items is not None:
                wanted = self._graph_of_items(items) if self.mode == "graphs" else self.graph.pairs[:, 0]
                items = np.flatnonzero(np.isin(wanted, step.items))
            pairs = self.graph.pairs[items]
        if self.mode == "batch":
            assert step.items is not None
            inputs = batch_inputs(self.source, step.items, epoch=epoch, pairs=pairs)
        else:
            inputs = whole_inputs(
                self.source,
                step.items,
                epoch=epoch,
                chunk_nodes=self.chunk_nodes,
                keep_tokens=self.mode == "graphs" or self.keeps_tokens,
                pairs=pairs,
            )
        if items is None:
            if self.task.level == "graph":
                items = np.arange(self.graph.num_graphs) if step.items is None else step.items
            else:
                items = inputs.node_ids[: inputs.targets].numpy()
        y = None if self.graph.y is None else torch.from_numpy(np.array(self.graph.y[items]))
        return Loaded(inputs, items, y)
