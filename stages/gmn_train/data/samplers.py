"""Samplers decide which units a step takes and read its inputs: whole graphs, batches of nodes, batches of graphs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.types import IntArray
from gmn_train.data.inputs import ModelInputs, batch_inputs, whole_inputs
from gmn_train.data.inputs.rows import concatenate_ranges
from gmn_train.data.labelled import LabelledData
from gmn_train.data.read_ahead import Clock
from gmn_train.data.steps import WHOLE_GRAPH, Step, in_steps, plan_epoch
from gmn_train.machine.compute import choose_device
from gmn_train.settings.run_settings import TrainConfig

FLOATS_PER_CHANNEL = 4
"""Numbers that a token block keeps per token, channel and layer where layers are not computed on tiles."""
FLOATS_ON_TILES = 3
"""Numbers per token and feature beside one for each layer, which saves its input only: encodings, the last output, and
a gradient."""
NO_PAIRS = np.zeros((0, 2), np.int64)


@dataclass(frozen=True)
class Loaded:
    """The inputs of one step, and what its output rows are."""

    inputs: ModelInputs
    items: IntArray
    """(rows,) the item of each row of logits."""
    y: Tensor | None
    """(rows, ...) labels, targets scaled as the model learns them."""


class Sampler(Protocol):
    """Plans are pure functions of the settings and the epoch; reading them is apart."""

    data: LabelledData
    config: TrainConfig
    chunk_nodes: int | None
    """Nodes whose tokens are encoded at a time; None for all."""
    cuts_rows: bool
    """Whether processes share the rows of one graph, instead of each taking nodes or graphs of its own."""

    def training_steps(self, epoch: int) -> list[Step]:
        """The steps of a training epoch."""

    def evaluation_steps(self, part: str | None = None) -> list[Step]:
        """Steps that cover one part, or everything."""

    def load(self, step: Step, epoch: int | None) -> Loaded:
        """Read the inputs of one step; epoch None for evaluation."""

    def expect(self, step: Step) -> None:
        """Tell the store what a later step will read."""

    def node_steps(self, items: IntArray) -> list[list[Step]]:
        """Steps over nodes, whatever carries the labels. Steps of one list together hold whole graphs of `items`."""

    def load_nodes(self, step: Step, epoch: int | None) -> ModelInputs:
        """Read the inputs of a step over nodes, without pairs."""


class ReadsStore:
    """What the samplers share: a store, a run's settings, and labels beside inputs."""

    cuts_rows = False

    def __init__(self, data: LabelledData, config: TrainConfig, clock: Clock) -> None:
        self.data, self.config, self.clock = data, config, clock
        self.source, self.graph = data.source, data.graph
        self.chunk_nodes = nodes_per_chunk(data, config)

    def expect(self, step: Step) -> None:  # noqa: ARG002
        self.data.store.expect(self.data.store.block_ptr[:-1])  # all of it

    @property
    def keeps_tokens(self) -> bool:
        """Whether the tokens of a whole graph are kept in memory, not read again for every use."""
        manifest = self.data.store.manifest
        return (manifest.token_nodes * 8 + manifest.token_edges * 4) < self.config.memory_budget * 2.5e8

    def labelled(self, inputs: ModelInputs, items: IntArray) -> Loaded:
        if self.graph.y is None:
            return Loaded(inputs, items, None)
        y, targets = np.array(self.graph.y[items]), self.data.trained_on.y
        return Loaded(inputs, items, torch.from_numpy(y if targets is None else targets.apply(y)))


def nodes_per_chunk(data: LabelledData, config: TrainConfig) -> int | None:
    """Nodes whose token activations fit the memory budget; None where all do."""
    model = config.model
    floats: float
    if choose_device(config.device).type == "cpu" and model.scan_backend in ("auto", "numba"):
        floats = (model.token_layers + FLOATS_ON_TILES) * model.scanned_width
    else:
        floats = max(model.token_layers, 1) * model.scanned_width * (1 + model.expand) * FLOATS_PER_CHANNEL
    per_node = data.source.view.settings.sequence_length * floats * 4
    fits = int(config.memory_budget * 1e9 / per_node)
    return None if fits >= data.graph.num_nodes else max(fits, 256)


class WholeGraph(ReadsStore):
    """An epoch is one step."""

    cuts_rows = True

    def training_steps(self, epoch: int) -> list[Step]:  # noqa: ARG002
        return [WHOLE_GRAPH]

    def evaluation_steps(self, part: str | None = None) -> list[Step]:  # noqa: ARG002
        return [WHOLE_GRAPH]

    def node_steps(self, items: IntArray) -> list[list[Step]]:  # noqa: ARG002
        return [[WHOLE_GRAPH]]

    def load(self, step: Step, epoch: int | None) -> Loaded:  # noqa: ARG002
        return self.labelled(self._inputs(epoch, self.graph.pairs), np.arange(self.graph.num_items))

    def load_nodes(self, step: Step, epoch: int | None) -> ModelInputs:  # noqa: ARG002
        return self._inputs(epoch, NO_PAIRS)

    def _inputs(self, epoch: int | None, pairs: IntArray | None) -> ModelInputs:
        return whole_inputs(
            self.source,
            epoch=epoch,
            chunk_nodes=self.chunk_nodes,
            keep_tokens=self.keeps_tokens,
            pairs=pairs,
            clock=self.clock,
        )


class NodeBatches(ReadsStore):
    """An approximation: the node scan and message passing see the nodes of one batch."""

    @property
    def _size(self) -> int:
        links = self.graph.pairs is not None  # a pair has two nodes
        return max(self.config.batch_nodes // 2, 1) if links else self.config.batch_nodes

    def training_steps(self, epoch: int) -> list[Step]:
        # Pairs reach all over the graph: reads of a window of blocks would not stay in it.
        blocks = self.data.store.block_ptr if self.graph.pairs is None else None
        train = self.data.items["train"]
        return plan_epoch(train, self._size, self.config.seed, epoch, block_ptr=blocks)

    def evaluation_steps(self, part: str | None = None) -> list[Step]:
        items = np.arange(self.graph.num_items) if part is None else self.data.items[part]
        return in_steps(items, self._size)

    def expect(self, step: Step) -> None:
        assert step.units is not None
        self.data.store.expect(step.units if self.graph.pairs is None else self.graph.pairs[step.units].ravel())

    def node_steps(self, items: IntArray) -> list[list[Step]]:  # noqa: ARG002 - all nodes are candidates
        return [in_steps(np.arange(self.graph.num_nodes), self.config.batch_nodes)]

    def load(self, step: Step, epoch: int | None) -> Loaded:
        assert step.units is not None
        if self.graph.pairs is None:
            return self.labelled(batch_inputs(self.source, step.units, epoch=epoch), step.units)
        pairs = self.graph.pairs[step.units]
        inputs = batch_inputs(self.source, np.unique(pairs), epoch=epoch, pairs=pairs)  # both ends of every pair
        return self.labelled(inputs, step.units)

    def load_nodes(self, step: Step, epoch: int | None) -> ModelInputs:
        assert step.units is not None
        return batch_inputs(self.source, step.units, epoch=epoch, pairs=NO_PAIRS)


class GraphBatches(ReadsStore):
    """A unit is a graph."""

    def _graphs_of(self, part: str) -> IntArray:
        items = self.data.items[part]
        return items if self.data.task.item == "graph" else np.unique(self.data.graph_of_items(items))

    def training_steps(self, epoch: int) -> list[Step]:
        blocks = np.searchsorted(self.source.graph_ptr, self.data.store.block_ptr)  # by graph instead of by node
        graphs, size = self._graphs_of("train"), self.config.batch_size
        return plan_epoch(graphs, size, self.config.seed, epoch, block_ptr=blocks)

    def evaluation_steps(self, part: str | None = None) -> list[Step]:
        graphs = np.arange(self.graph.num_graphs) if part is None else self._graphs_of(part)
        return in_steps(graphs, self.config.batch_size)

    def expect(self, step: Step) -> None:
        self.data.store.expect(self.source.graph_ptr[step.units])  # a graph lies in one block

    def node_steps(self, items: IntArray) -> list[list[Step]]:
        graphs = np.unique(self.data.graph_of_items(items))
        return [[step] for step in in_steps(graphs, self.config.batch_size)]

    def load(self, step: Step, epoch: int | None) -> Loaded:
        assert step.units is not None
        if self.graph.pairs is not None:
            items = self._pairs_of(step.units)
            return self.labelled(self._inputs(step.units, epoch, self.graph.pairs[items]), items)
        inputs = self._inputs(step.units, epoch, None)
        return self.labelled(inputs, inputs.node_ids.numpy() if self.data.task.item == "node" else step.units)

    def load_nodes(self, step: Step, epoch: int | None) -> ModelInputs:
        assert step.units is not None
        return self._inputs(step.units, epoch, NO_PAIRS)

    def _inputs(self, graphs: IntArray, epoch: int | None, pairs: IntArray | None) -> ModelInputs:
        return whole_inputs(
            self.source, graphs, epoch=epoch, chunk_nodes=self.chunk_nodes, pairs=pairs, clock=self.clock
        )

    def _pairs_of(self, graphs: IntArray) -> IntArray:
        """The pairs that lie in these graphs, ascending."""
        order, borders = self._pairs_by_graph
        return np.sort(order[concatenate_ranges(borders[graphs], borders[graphs + 1] - borders[graphs])])

    @cached_property
    def _pairs_by_graph(self) -> tuple[IntArray, IntArray]:
        """(pairs in the order of their graphs, (graphs+1,) borders)."""
        of_graph = self.data.graph_of_items(np.arange(self.graph.num_items))
        counts = np.bincount(of_graph, minlength=self.graph.num_graphs)
        return np.argsort(of_graph, kind="stable"), np.append(0, np.cumsum(counts))


SAMPLERS: dict[str, Callable[..., Sampler]] = {"full": WholeGraph, "batch": NodeBatches, "graphs": GraphBatches}
"""By mode."""


def make_sampler(data: LabelledData, config: TrainConfig, clock: Clock | None = None) -> Sampler:
    """The sampler of a run. clock: counts the seconds that reading makes a step wait."""
    assert config.mode is not None, "settings are resolved before a sampler is made"
    return SAMPLERS[config.mode](data, config, clock or Clock())
