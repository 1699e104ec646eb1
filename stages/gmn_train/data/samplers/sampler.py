"""What every sampler offers, and what the three have in common."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.types import IntArray
from gmn_train.data.clock import Clock
from gmn_train.data.inputs import ModelInputs
from gmn_train.data.labelled import LabelledData
from gmn_train.data.steps import Step, World
from gmn_train.settings.run_settings import TrainConfig

FLOATS_PER_CHANNEL = 40
"""Activations that a token's scan keeps for the backward pass, per channel and layer; measured at width 64."""
NO_PAIRS = np.zeros((0, 2), np.int64)


@dataclass(frozen=True)
class Loaded:
    """The inputs of one step, and what its output rows are."""

    inputs: ModelInputs
    items: IntArray
    """(rows,) the item of each row of logits."""
    y: Tensor | None
    """(rows, ...) labels."""


class Sampler(Protocol):
    """Plans are pure functions of the settings and the epoch; reading them is apart."""

    data: LabelledData
    config: TrainConfig

    def training_steps(self, epoch: int) -> list[Step]:
        """The steps of a training epoch."""

    def evaluation_steps(self, part: str | None = None) -> list[Step]:
        """Steps that cover one part, or everything."""

    def load(self, step: Step, epoch: int | None) -> Loaded:
        """Read the inputs of one step; epoch None for evaluation."""

    def node_steps(self, items: IntArray) -> list[list[Step]]:
        """Steps over nodes, whatever carries the labels. Steps of one list together hold whole graphs of `items`."""

    def load_nodes(self, step: Step, epoch: int | None) -> ModelInputs:
        """Read the inputs of a step over nodes, without pairs."""


class ReadsStore:
    """What the samplers share: a store, a run's settings, and labels beside inputs."""

    def __init__(self, data: LabelledData, config: TrainConfig, clock: Clock, world: World) -> None:
        self.data, self.config, self.clock, self.world = data, config, clock, world
        self.source, self.graph = data.source, data.graph
        self.chunk_nodes = nodes_per_chunk(data, config)

    def labelled(self, inputs: ModelInputs, items: IntArray) -> Loaded:
        y = None if self.graph.y is None else torch.from_numpy(np.array(self.graph.y[items]))
        return Loaded(inputs, items, y)


def nodes_per_chunk(data: LabelledData, config: TrainConfig) -> int | None:
    """Nodes whose token activations fit the memory budget; None where all do."""
    model = config.model
    channels = max(model.token_layers, 1) * model.width * (1 + model.expand)
    per_node = data.source.view.settings.sequence_length * channels * 4 * FLOATS_PER_CHANNEL
    fits = int(config.memory_budget * 1e9 / per_node)
    return None if fits >= data.graph.num_nodes else max(fits, 256)
