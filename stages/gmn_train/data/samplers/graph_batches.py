"""Mode `graphs`: many graphs, a batch of them in each step; items are the graphs, their nodes or pairs of nodes."""

from functools import cached_property

import numpy as np

from gmn_pipeline.types import IntArray
from gmn_train.data.inputs import ModelInputs, whole_inputs
from gmn_train.data.inputs.rows import concatenate_ranges
from gmn_train.data.samplers.sampler import NO_PAIRS, Loaded, ReadsStore
from gmn_train.data.steps import Step, in_steps, plan_epoch


class GraphBatches(ReadsStore):
    """A unit is a graph."""

    def _graphs_of(self, part: str) -> IntArray:
        items = self.data.items[part]
        return items if self.data.task.level == "graph" else np.unique(self.data.graph_of_items(items))

    def training_steps(self, epoch: int) -> list[Step]:
        blocks = np.searchsorted(self.source.graph_ptr, self.data.store.block_ptr)  # by graph instead of by node
        graphs, size = self._graphs_of("train"), self.config.batch_size
        return plan_epoch(graphs, size, self.config.seed, epoch, block_ptr=blocks, world=self.world)

    def evaluation_steps(self, part: str | None = None) -> list[Step]:
        graphs = np.arange(self.graph.num_graphs) if part is None else self._graphs_of(part)
        return in_steps(graphs, self.config.batch_size, self.world)

    def node_steps(self, items: IntArray) -> list[list[Step]]:
        graphs = np.unique(self.data.graph_of_items(items))
        return [[step] for step in in_steps(graphs, self.config.batch_size, self.world)]

    def load(self, step: Step, epoch: int | None) -> Loaded:
        assert step.units is not None
        if self.graph.pairs is not None:
            items = self._pairs_of(step.units)
            return self.labelled(self._inputs(step.units, epoch, self.graph.pairs[items]), items)
        inputs = self._inputs(step.units, epoch, None)
        return self.labelled(inputs, inputs.node_ids.numpy() if self.data.task.level == "node" else step.units)

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
