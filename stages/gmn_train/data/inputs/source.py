"""Where inputs come from: a view of a token store, read as a model's settings ask, and what depends on the epoch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gmn_pipeline.errors import ModelError, TrainError
from gmn_pipeline.graph import Graph
from gmn_pipeline.store.format.encodings import ENCODINGS, EncodingFormat
from gmn_pipeline.store.reading.view import Part, TokenBatch, TokenView
from gmn_pipeline.tables import load_code
from gmn_pipeline.types import Array, FloatArray, IntArray
from gmn_train.data.draws import draw_repeats, draw_signs, draw_ties
from gmn_train.data.inputs.degrees import degree_inputs
from gmn_train.data.inputs.entries import FeatureEntries
from gmn_train.data.inputs.record import InputFacts, Neighbourhood, NodeOrder
from gmn_train.data.inputs.rows import feature_tensor, neighbourhood
from gmn_train.data.trained_on import Columns, pick_columns
from gmn_train.model.tables import READABLE
from gmn_train.settings.model_settings import ModelConfig

TOKEN_PARTS: dict[str, Part] = {"token_edges": "edges", "walks": "walks"}
"""What a gathered token may carry beside its nodes, by the word that asks for it."""


@dataclass(frozen=True)
class _Features:
    """Stored features, and how they become what the model takes."""

    values: Array
    columns: Columns
    index: IntArray | None
    """Which stored column serves each of the model's; None where they are the same."""

    @classmethod
    def of(
        cls,
        what: str,
        values: Array | None,
        names: tuple[str, ...] | None,
        categories: tuple[int, ...] | None,
        like: Any,
        field: str,
    ) -> "_Features | None":
        wanted: Columns | None = getattr(like, field) if like is not None else None
        if like is not None and (wanted is None) != (values is None):
            has, had = ("no", "had some") if values is None else ("some", "had none")
            raise TrainError(f"the data has {has} {what}; the data the model was trained on {had}")
        if values is None:
            return None
        columns = wanted or Columns(values.shape[1], names, categories)
        return cls(values, columns, columns.choose(names, values.shape[1], what))

    def tensor(self, rows: IntArray | slice) -> Tensor:
        return feature_tensor(self.columns.apply(pick_columns(self.values[rows], self.index)))


class InputSource:
    """A view of a store and the settings that decide what is read of it. Opened once, used for every epoch."""

    def __init__(
        self, view: TokenView, config: ModelConfig, *, seed: int = 0, graph: Graph | None = None, like: Any = None
    ) -> None:
        """seed: of everything that is drawn per epoch. StoreError where the store lacks an encoding or ordering.

        graph: the store's, if its task or labels are to be others. like: the `TrainedOn` whose columns and scaling the
        features are brought to; without it they are as stored.
        """
        self.view, self.config, self.seed = view, config, seed
        self.graph: Graph = view.store.graph if graph is None else graph
        self._x = _Features.of("features", self.graph.x, self.graph.x_names, self.graph.x_categories, like, "x")
        self._edges = _Features.of(
            "edge features", self.graph.edge_attr, self.graph.edge_names, self.graph.edge_categories, like, "edge_attr"
        )
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
    def degrees(self) -> FloatArray | None:
        """(n, k) what the model reads of degrees."""
        return degree_inputs(self.graph, self.config)

    @cached_property
    def graph_ptr(self) -> IntArray:
        """(graphs+1,) int64, also for one graph."""
        given = self.graph.graph_ptr
        return np.array([0, self.graph.num_nodes]) if given is None else given

    @cached_property
    def facts(self) -> InputFacts:
        """What a model for this source must be made for."""
        task = self.graph.task
        return InputFacts(
            x_columns=0 if self._x is None else self._x.columns.count,
            x_categories=None if self._x is None else self._x.columns.categories,
            extra_columns=sum(e.shape[1] for _, e in self.encodings) + self.config.degree_columns,
            smooth_columns=sum(e.shape[1] for f, e in self.encodings if f.free_signs),
            edge_columns=self._edges.columns.count if self._edges is not None and self.reads_edges else 0,
            edge_categories=self._edges.columns.categories if self._edges is not None and self.reads_edges else None,
            tokens=self.view.settings,
            item=task.item if task else "node",
            outputs=task.outputs if task else self.config.width,
        )

    @cached_property
    def all_edges(self) -> Neighbourhood:
        """Of all graphs at once; kept, with what branches derive from it."""
        return neighbourhood(self.graph.slot_sources, self.graph.indices, self.graph.num_nodes, self.graph.directed)

    @cached_property
    def all_x(self) -> Tensor | None:
        """Of all nodes, kept: 87 MB on ogbn-arxiv, which would be copied for every epoch."""
        return self.node_features(slice(None))

    @cached_property
    def all_entries(self) -> FeatureEntries | None:
        """Of the same, where most are zeros."""
        return FeatureEntries.of(self.all_x)

    @property
    def reads_edges(self) -> bool:
        """Whether the graph has edge features and the model reads them."""
        return self.graph.edge_attr is not None and "edge_features" in self.config.reads

    @cached_property
    def all_edge_attr(self) -> Tensor | None:
        return self.edge_features(slice(None))

    def node_features(self, ids: IntArray | slice) -> Tensor | None:
        """(U, F) features of some nodes as the model takes them; None where there are none."""
        return None if self._x is None else self._x.tensor(ids)

    def edge_features(self, slots: IntArray | slice) -> Tensor | None:
        """(E, Fe) features at some CSR slots; None where there are none or the model does not read them."""
        return self._edges.tensor(slots) if self._edges is not None and self.reads_edges else None


def gather_tokens(source: InputSource, ids: IntArray, epoch: int | None) -> TokenBatch:
    """The nodes' tokens, their repeats drawn for the epoch."""
    view, stored = source.view, source.view.store.settings.s
    repeats = None
    if epoch is not None and source.config.repeats == "draw" and stored > 1:
        repeats = draw_repeats(source.seed, epoch, ids, view.settings.m, view.settings.s, stored)
        repeats = None if len(ids) == 0 else repeats
    return view.gather(ids, parts=source.parts, repeats=repeats)


def node_tensors(
    source: InputSource,
    ids: IntArray,
    graphs: IntArray,
    graph_of: IntArray,
    epoch: int | None,
    everything: bool = False,
) -> dict[str, Any]:
    """x, encodings, degrees and extra inputs of the nodes `ids`; graph_of (U,) is each one's place in `graphs`.

    everything: the ids are all there are, in their order.
    """
    x = source.all_x if everything else source.node_features(ids)
    columns = []
    for kept, values in source.encodings:
        part = values[ids]  # (U, k)
        if kept.free_signs:
            flip = epoch if source.config.lap_signs == "flip" else None
            signs = draw_signs(source.seed, flip, graphs, values.shape[1])  # (graphs, k)
            # Unit vectors of n nodes have entries near n^-1/2: scaled to order 1, so that graph size does not decide.
            scale = np.sqrt(np.diff(source.graph_ptr)[graphs]).astype(np.float32)
            part = part * (signs * scale[:, None])[graph_of]
        columns.append(part)
    return {
        "x": x,
        "entries": source.all_entries if everything else None,
        "encodings": torch.from_numpy(np.concatenate(columns, 1)) if columns else None,
        "degrees": None if source.degrees is None else torch.from_numpy(source.degrees[ids]),
        "extra": extra_inputs(source, ids, epoch),
    }


def extra_inputs(source: InputSource, ids: IntArray, epoch: int | None) -> dict[str, Tensor]:
    """What only some models read, by name: see `model.tables.READABLE`."""
    wanted = [READABLE[name] for name in sorted(source.config.reads)]
    return {entry.name: load_code(entry.code)(source, ids, epoch) for entry in wanted if entry.code is not None}


def scan_order(
    source: InputSource, ids: IntArray, graph_of: IntArray, starts: IntArray, epoch: int | None
) -> NodeOrder:
    """Rows by graph, then rank, then a random draw per node: never by id, which would leak positions."""
    borders = torch.from_numpy(np.asarray(starts, np.int64))
    if source.ranks is None:
        return NodeOrder(torch.arange(len(ids)), borders)
    ties = draw_ties(source.seed, epoch if source.config.order_ties == "epoch" else None, ids)
    rows = np.lexsort((ties, source.ranks[ids], graph_of))
    return NodeOrder(torch.from_numpy(rows), borders)
