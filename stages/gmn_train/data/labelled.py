"""A store opened for a run: what a model reads of it, what is to be predicted, and which items are for what."""

from dataclasses import dataclass

import numpy as np

from gmn_pipeline.errors import ConfigError, TrainError
from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.metrics import METRICS
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_pipeline.task import Task
from gmn_pipeline.types import IntArray
from gmn_train.data.inputs import InputSource
from gmn_train.data.steps import split_items
from gmn_train.data.trained_on import TrainedOn
from gmn_train.settings.run_settings import TrainConfig

PARTS = {"train": TRAIN, "val": VAL, "test": TEST}


@dataclass(frozen=True)
class LabelledData:
    """The view of a store at a run's settings. An *item* carries a label: a node, a graph or a pair."""

    source: InputSource
    task: Task
    items: dict[str, IntArray]
    """By part."""
    trained_on: TrainedOn
    """What the model's inputs and outputs are like."""

    @classmethod
    def open(
        cls,
        store: TokenStore,
        config: TrainConfig,
        *,
        trained_on: TrainedOn | None = None,
        pairs: IntArray | None = None,
        need_labels: bool = True,
    ) -> "LabelledData":
        """A store to train from; or, with what a model was trained on, one to evaluate or predict.

        pairs: (K, 2) node ids to predict instead of the store's. Raises StoreError, ConfigError (no such split),
        TrainError (nothing to learn from, or data that does not fit the model).
        """
        graph = store.graph
        if pairs is not None:
            graph = graph.replace(pairs=pairs, y=None, splits=None, task=trained_on.task if trained_on else graph.task)
        if trained_on is not None:
            graph = trained_on.adopt(graph)
        task = graph.task
        stored = store.graph.task
        if trained_on is not None and need_labels and graph.y is None and stored is not None:
            raise TrainError(
                f"{config.store} has a {stored.item} {stored.kind} task; the model was trained for "
                f"{trained_on.task.item} {trained_on.task.kind}"
            )
        if task is None or (need_labels and graph.y is None):
            raise TrainError(f"{config.store} has no labels; tokenize a dataset with labels and a task to train on")
        if METRICS[task.metric].ranks_links and task.item != "link":
            raise TrainError(f"{config.store} has a {task.item} task, but its metric {task.metric} is for links only")
        count = 0 if graph.splits is None else len(graph.splits)
        if need_labels and config.split >= max(count, 1):
            raise ConfigError(f"split {config.split} does not exist; the store has splits 0..{count - 1}")
        if graph.splits is None and need_labels:
            raise TrainError(f"{config.store} has no splits; give the dataset train, val and test items")
        splits = graph.splits if config.split < count else None
        items = {part: split_items(splits, config.split, code, graph.num_items) for part, code in PARTS.items()}
        if need_labels and len(items["train"]) == 0:
            raise TrainError(f"split {config.split} of {config.store} has no training items")
        if trained_on is None:
            trained_on = TrainedOn.measure(
                graph, items["train"], features=config.scale_features, targets=config.scale_targets
            )
        view = store.view(config.m, config.M, config.s)
        source = InputSource(view, config.model, seed=config.seed, graph=graph, like=trained_on)
        source.check()
        return cls(source, task, items, trained_on)

    @property
    def graph(self) -> Graph:
        return self.source.graph

    @property
    def store(self) -> TokenStore:
        return self.source.view.store

    def graph_of_items(self, items: IntArray) -> IntArray:
        """The graph that each item lies in."""
        nodes = items if self.graph.pairs is None else self.graph.pairs[items, 0]
        return np.searchsorted(self.source.graph_ptr, nodes, side="right") - 1
