"""A store opened for training: which units a step takes, what they carry, and how they are read.

A *unit* is what a step is made of: nothing (the whole graph at once, `full`), nodes or pairs of one graph (`batch`), or
graphs. An *item* is what carries a label: a node, a graph or a pair.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.errors import ConfigError, TrainError
from gmn_pipeline.graph import TEST, TRAIN, VAL
from gmn_pipeline.store.reader import TokenStore
from gmn_pipeline.task import Task
from gmn_pipeline.types import IntArray
from gmn_train.data.inputs import InputSource, ModelInputs, batch_inputs, whole_inputs
from gmn_train.data.inputs.rows import concatenate_ranges
from gmn_train.data.steps import Step, in_steps, plan_epoch, split_items
from gmn_train.learning.precision import Precision
from gmn_train.settings.train_config import TrainConfig

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
        if task.metric == "mrr" and task.level != "link":
            raise TrainError(f"{config.store} has a {task.level} task with the metric mrr, which ranks links alone")
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

    @cached_property
    def _pairs_by_graph(self) -> tuple[IntArray, IntArray]:
        """(pairs in the order of their graphs, (graphs+1,) borders)."""
        of_graph = self._graph_of_items(np.arange(self.graph.num_items))
        counts = np.bincount(of_graph, minlength=self.graph.num_graphs)
        return np.argsort(of_graph, kind="stable"), np.append(0, np.cumsum(counts))

    def _pairs_of(self, units: IntArray | None) -> IntArray:
        """The pairs that a step's units hold, ascending."""
        if units is None:
            return np.arange(self.graph.num_items)
        if self.mode == "batch":
            return units
        order, borders = self._pairs_by_graph
        return np.sort(order[concatenate_ranges(borders[units], borders[units + 1] - borders[units])])

    def training_steps(self, epoch: int) -> list[Step]:
        """The steps of a training epoch, a pure function of the settings and the epoch."""
        units = self.units("train")
        if units is None:
            return [Step(0, None)]
        blocks: IntArray | None = self.store.block_ptr
        if self.mode == "graphs":
            blocks = np.searchsorted(self.source.graph_ptr, self.store.block_ptr)  # by graph instead of by node
        elif self.task.level == "link":
            blocks = None  # pairs reach all over the graph: reads of a window of blocks would not stay in it
        return plan_epoch(units, self._step_size, self.config.seed, epoch, block_ptr=blocks)

    def evaluation_steps(self, part: str | None = None) -> list[Step]:
        """Steps that cover one part, or everything."""
        if self.mode == "full":
            return [Step(0, None)]
        everything = np.arange(self.graph.num_items if self.mode == "batch" else self.graph.num_graphs)
        units = everything if part is None else self.units(part)
        assert units is not None
        return in_steps(units, self._step_size)

    @property
    def _step_size(self) -> int:
        if self.mode != "batch":
            return self.config.batch_size
        return max(self.config.batch_nodes // 2, 1) if self.task.level == "link" else self.config.batch_nodes

    def node_steps(self, items: IntArray) -> list[Step]:
        """Steps over nodes, whatever carries the labels, that cover the graphs of `items`: for `load_nodes`."""
        if self.mode == "full":
            return [Step(0, None)]
        if self.mode == "batch":
            return in_steps(np.arange(self.graph.num_nodes), self.config.batch_nodes)
        return in_steps(np.unique(self._graph_of_items(items)), self.config.batch_size)

    def load_nodes(self, step: Step, epoch: int | None) -> ModelInputs:
        """The inputs of a step over nodes, without pairs."""
        return self._inputs(step.items, step.items, epoch, np.zeros((0, 2), np.int64))

    def load(self, step: Step, epoch: int | None) -> Loaded:
        """Read the inputs of one step; epoch None for evaluation."""
        if self.task.level == "link":
            assert self.graph.pairs is not None
            items = self._pairs_of(step.items)
            pairs = self.graph.pairs[items]
            inputs = self._inputs(step.items, np.unique(pairs), epoch, pairs)  # both ends of every pair
        else:
            inputs = self._inputs(step.items, step.items, epoch, None)
            if self.task.level == "node":
                items = inputs.node_ids[: inputs.targets].numpy()
            else:
                items = np.arange(self.graph.num_graphs) if step.items is None else step.items
        y = None if self.graph.y is None else torch.from_numpy(np.array(self.graph.y[items]))
        return Loaded(inputs, items, y)

    def _inputs(
        self, graphs: IntArray | None, nodes: IntArray | None, epoch: int | None, pairs: IntArray | None
    ) -> ModelInputs:
        """Some nodes in mode `batch`, some graphs otherwise."""
        if self.mode == "batch":
            assert nodes is not None
            return batch_inputs(self.source, nodes, epoch=epoch, pairs=pairs)
        return whole_inputs(
            self.source,
            graphs,
            epoch=epoch,
            chunk_nodes=self.chunk_nodes,
            keep_tokens=self.mode == "graphs" or self.keeps_tokens,
            pairs=pairs,
        )
