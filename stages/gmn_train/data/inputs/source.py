"""Where inputs come from: a view of a token store, read as a model's settings ask."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from torch import Tensor

from gmn_pipeline.errors import ModelError
from gmn_pipeline.graph import Graph
from gmn_pipeline.store.encodings import ENCODINGS, EncodingFormat
from gmn_pipeline.store.view import Part, TokenView
from gmn_pipeline.types import Array, FloatArray, IntArray
from gmn_train.data.inputs.record import InputFacts
from gmn_train.data.inputs.rows import feature_tensor, neighbourhood
from gmn_train.data.neighbourhood import Neighbourhood
from gmn_train.settings.model_settings import ModelConfig

TOKEN_PARTS: dict[str, Part] = {"token_edges": "edges", "walks": "walks"}
"""What a gathered token may carry beside its nodes, by the word that asks for it."""


class InputSource:
    """A view of a store and the settings that decide what is read of it. Opened once, used for every epoch."""

    def __init__(self, view: TokenView, config: ModelConfig, *, seed: int = 0) -> None:
        """seed: of everything that is drawn per epoch. StoreError where the store lacks an encoding or ordering."""
        self.view, self.config, self.seed = view, config, seed
        self.graph: Graph = view.store.graph
        self.parts: Sequence[Part] = [part for word, part in TOKEN_PARTS.items() if word in config.reads]
        self.reads_tokens = "tokens" in config.reads and view.settings.m > 0
        if self.graph.num_nodes == 0:
            raise ModelError(f"{view.store.path} holds an empty graph; there is nothing to train on")

    def check(self) -> None:
        """StoreError where an encoding or ordering that the model reads is missing."""
        _ = self.facts, self.ranks

    @cached_property
    def encodings(self) -> list[tuple[EncodingFormat, FloatArray]]:
        """The encodings that the model reads, (n, k) each as stored; those with free signs first."""
        wanted, store = self.config.encodings, self.view.store
        if "encodings" not in self.config.reads:
            return []
        names = [name for name in ENCODINGS if name in store.manifest.encodings] if wanted == "all" else [wanted]
        formats = sorted((ENCODINGS[name] for name in names), key=lambda f: not f.free_signs)
        return [(f, store.encoding(f.name)[f.columns]) for f in formats]

    @cached_property
    def ranks(self) -> IntArray | None:
        """(n,) importance of each node in the scan, equal where tied; None where the model scans no nodes."""
        name = self.config.order
        if "ordering" not in self.config.reads:
            return None
        if name == "random":
            return np.zeros(self.graph.num_nodes, dtype=np.int32)
        if name == "degree" and name not in self.view.store.manifest.orderings:
            return self.graph.degrees
        return self.view.store.ordering(name)["ranks"]

    @cached_property
    def graph_ptr(self) -> IntArray:
        """(graphs+1,) int64, also for one graph."""
        given = self.graph.graph_ptr
        return np.array([0, self.graph.num_nodes]) if given is None else given

    @cached_property
    def facts(self) -> InputFacts:
        """What a model for this source must be made for."""
        g, task = self.graph, self.graph.task
        return InputFacts(
            x_columns=0 if g.x is None else g.x.shape[1],
            x_categories=g.x_categories,
            extra_columns=sum(e.shape[1] for _, e in self.encodings) + int(self.config.log_degree),
            smooth_columns=sum(e.shape[1] for f, e in self.encodings if f.free_signs),
            edge_columns=0 if self.edge_attr is None else self.edge_attr.shape[1],
            edge_categories=None if self.edge_attr is None else g.edge_categories,
            tokens=self.view.settings,
            level=task.level if task else "node",
            outputs=task.outputs if task else self.config.width,
        )

    @cached_property
    def all_edges(self) -> Neighbourhood:
        """Of all graphs at once; kept, with what branches derive from it."""
        return neighbourhood(self.graph.slot_sources, self.graph.indices, self.graph.num_nodes, self.graph.directed)

    @cached_property
    def all_x(self) -> Tensor | None:
        """Of all nodes, kept: 87 MB on ogbn-arxiv, which would be copied for every epoch."""
        return None if self.graph.x is None else feature_tensor(self.graph.x)

    @property
    def edge_attr(self) -> Array | None:
        """(E, Fe) by CSR slot, where the graph has edge features and the model reads them."""
        return self.graph.edge_attr if "edge_features" in self.config.reads else None

    @cached_property
    def all_edge_attr(self) -> Tensor | None:
        return None if self.edge_attr is None else feature_tensor(self.edge_attr)
