"""Mode `batch`: one graph, a batch of its nodes in each step; of its pairs for a link task."""

import numpy as np

from gmn_pipeline.types import IntArray
from gmn_train.data.inputs import ModelInputs, batch_inputs
from gmn_train.data.samplers.sampler import NO_PAIRS, Loaded, ReadsStore
from gmn_train.data.steps import Step, in_steps, plan_epoch


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
        return plan_epoch(train, self._size, self.config.seed, epoch, block_ptr=blocks, world=self.world)

    def evaluation_steps(self, part: str | None = None) -> list[Step]:
        items = np.arange(self.graph.num_items) if part is None else self.data.items[part]
        return in_steps(items, self._size, self.world)

    def node_steps(self, items: IntArray) -> list[list[Step]]:  # noqa: ARG002 - all nodes are candidates
        return [in_steps(np.arange(self.graph.num_nodes), self.config.batch_nodes, self.world)]

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
