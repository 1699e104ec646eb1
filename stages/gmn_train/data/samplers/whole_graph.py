"""Mode `full`: one graph, all of its nodes in each step."""

import numpy as np

from gmn_pipeline.types import IntArray
from gmn_train.data.inputs import ModelInputs, whole_inputs
from gmn_train.data.samplers.sampler import NO_PAIRS, Loaded, ReadsStore
from gmn_train.data.steps import WHOLE_GRAPH, Step


class WholeGraph(ReadsStore):
    """An epoch is one step."""

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
        manifest = self.data.store.manifest
        small = (manifest.token_nodes * 8 + manifest.token_edges * 4) < self.config.memory_budget * 2.5e8
        return whole_inputs(
            self.source, epoch=epoch, chunk_nodes=self.chunk_nodes, keep_tokens=small, pairs=pairs, clock=self.clock
        )
