"""Samplers decide which units a step takes and read its inputs.

whole_graph     one graph, all nodes in each step: exact
node_batches    one graph, a batch of its nodes (or pairs) in each step
graph_batches   many graphs, a batch of them in each step
"""

from gmn_pipeline.tables import load_code
from gmn_train.data.clock import Clock
from gmn_train.data.labelled import LabelledData
from gmn_train.data.samplers.sampler import Loaded, Sampler
from gmn_train.data.steps import ALONE, World
from gmn_train.settings.run_settings import TrainConfig

__all__ = ["Loaded", "Sampler", "make_sampler"]

SAMPLERS = {
    "full": "gmn_train.data.samplers.whole_graph:WholeGraph",
    "batch": "gmn_train.data.samplers.node_batches:NodeBatches",
    "graphs": "gmn_train.data.samplers.graph_batches:GraphBatches",
}
"""By mode."""


def make_sampler(data: LabelledData, config: TrainConfig, clock: Clock | None = None, world: World = ALONE) -> Sampler:
    """The sampler of a run. clock: counts the seconds that reading makes a step wait."""
    assert config.mode is not None, "settings are resolved before a sampler is made"
    sampler: Sampler = load_code(SAMPLERS[config.mode])(data, config, clock or Clock(), world)
    return sampler
