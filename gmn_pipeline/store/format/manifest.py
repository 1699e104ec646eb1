"""A store's manifest: everything about it that is not an array. Kept in the attributes of the root group.

It holds no clock time and no path, so two stores of the same content have the same manifest.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import xxhash

from gmn_pipeline.console.config import adapter_of
from gmn_pipeline.errors import StoreCorruptError, StoreError, nearest
from gmn_pipeline.graph import Graph
from gmn_pipeline.store.format.digests import FACTS, digest_of
from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_pipeline.store.format.words import Codec
from gmn_pipeline.task import Task

FORMAT = 1
ATTRIBUTE = FACTS
CHECKSUM_ATTRIBUTE = "gmn_checksum"
MOST = 1 << 48
"""No count of a store is larger."""

Scalar = str | int | float | bool | None
_STRICT = {"extra": "forbid"}


@dataclass(frozen=True)
class FeatureFacts:
    """Type, width and names of node or edge features."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    dtype: Literal["float32", "int32"]
    columns: int
    categories: tuple[int, ...] | None
    names: tuple[str, ...] | None = None
    """A name per column, where the user's file has them."""


@dataclass(frozen=True)
class GraphFacts:
    """The sizes of the graph in a store: enough to know every array's shape and type without opening it."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    nodes: int
    slots: int
    edges: int
    graphs: int
    many: bool
    """Whether there is a graph_ptr."""
    items: int
    splits: int
    directed: bool
    simple: bool
    x: FeatureFacts | None
    edge_attr: FeatureFacts | None
    labels: bool
    pairs: bool
    fingerprint: str
    """Digest of all arrays, names and the task."""
    node_id_bytes: int = 0
    """Bytes of the user's ids of nodes together; 0 where nodes are called by their numbers."""
    graph_id_bytes: int = 0

    @classmethod
    def of(cls, graph: Graph) -> "GraphFacts":
        return cls(
            nodes=graph.num_nodes,
            slots=graph.num_slots,
            edges=graph.num_edges,
            graphs=graph.num_graphs,
            many=graph.graph_ptr is not None,
            items=graph.num_items,
            splits=0 if graph.splits is None else len(graph.splits),
            directed=graph.directed,
            simple=graph.is_simple,
            x=_feature_facts(graph.x, graph.x_categories, graph.x_names),
            edge_attr=_feature_facts(graph.edge_attr, graph.edge_categories, graph.edge_names),
            labels=graph.y is not None,
            pairs=graph.pairs is not None,
            fingerprint=graph_fingerprint(graph),
            node_id_bytes=0 if graph.node_id_bytes is None else graph.node_id_bytes.size,
            graph_id_bytes=0 if graph.graph_id_bytes is None else graph.graph_id_bytes.size,
        )


@dataclass(frozen=True)
class Manifest:
    """What a store holds and how it was made."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    dataset: dict[str, Scalar]
    """What the graph came from: a name, and the options its content depends on."""
    graph: GraphFacts
    task: Task | None
    tokens: TokenSettings
    encodings: dict[str, dict[str, Scalar]]
    """By encoding, the settings it was computed with."""
    orderings: dict[str, dict[str, Scalar]]
    codec: Codec
    block_size: int
    blocks: int
    format: int = FORMAT
    state: Literal["writing", "complete"] = "writing"
    token_nodes: int = 0
    """Entries of all tokens' node lists together; 0 until complete, as are the next two."""
    token_edges: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    """By group, a digest of its arrays' checksums; `tokens` covers all blocks."""

    @property
    def fingerprint(self) -> str:
        """Digest of graph and settings: equal fingerprints, equal content (codec and blocks are only its packing)."""
        content = {
            "graph": self.graph.fingerprint,
            "tokens": self.tokens.as_dict(),
            "encodings": self.encodings,
            "orderings": self.orderings,
        }
        return digest_of(content)

    def check_has(self, what: Literal["encoding", "ordering"], name: str, where: str) -> None:
        """StoreError where the store was made without it."""
        present = list(self.encodings if what == "encoding" else self.orderings)
        if name not in present:
            has = ", ".join(present) or f"no {what}"
            raise StoreError(
                f"{where} has no {what} '{name}'{nearest(name, present)}; it has {has}: "
                "tokenize again with it, or choose another"
            )

    def as_planned(self) -> "Manifest":
        """The manifest as it was before anything was written."""
        return replace(self, state="writing", digests={}, token_nodes=0, token_edges=0)

    def as_attributes(self) -> dict[str, Any]:
        """The attributes of the root group."""
        body = _without_unset(
            json.loads(
                json.dumps({**asdict(self), "task": self.task and self.task.as_dict(), "fingerprint": self.fingerprint})
            )
        )
        return {ATTRIBUTE: body, CHECKSUM_ATTRIBUTE: digest_of(body)}

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, Any], where: str) -> "Manifest":
        """Read a manifest back. StoreError where it is none or newer; StoreCorruptError where it was changed."""
        body = attributes.get(ATTRIBUTE)
        if not isinstance(body, dict) or "format" not in body:
            raise StoreError(f"{where} is a Zarr group but not a token store; make one with gmn-prep tokenize")
        if body["format"] != FORMAT:
            raise StoreError(
                f"{where} has store format {body['format']}, this version reads format {FORMAT}; "
                "update gmn-pipeline or tokenize again"
            )
        if digest_of(body) != attributes.get(CHECKSUM_ATTRIBUTE):
            raise StoreCorruptError(
                f"{where}/zarr.json: the manifest does not match its checksum; restore or rebuild it"
            )
        from pydantic import ValidationError

        body = dict(body)
        fingerprint = body.pop("fingerprint", None)
        try:
            manifest: Manifest = adapter_of(cls).validate_python(body)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise StoreCorruptError(f"{where}/zarr.json: manifest field {place}: {first['msg']}") from error
        if manifest.fingerprint != fingerprint:
            raise StoreCorruptError(
                f"{where}/zarr.json: the fingerprint does not match the manifest; rebuild the store"
            )
        manifest._check_counts(where)
        return manifest

    def _check_counts(self, where: str) -> None:
        """Refuse counts that no store can have, before anything is sized by them."""
        counts = {**vars(self.graph), **vars(self)}
        for name, count in counts.items():
            if type(count) is int and not 0 <= count <= MOST:
                raise StoreCorruptError(f"{where}/zarr.json: {name} is {count}; restore or rebuild the store")
        if self.blocks > self.graph.nodes or self.block_size < 1:
            raise StoreCorruptError(
                f"{where}/zarr.json: {self.blocks:,} blocks of {self.block_size:,} nodes cannot hold "
                f"{self.graph.nodes:,} nodes; restore or rebuild the store"
            )


def graph_fingerprint(graph: Graph) -> str:
    """Digest of a graph's arrays (names, types, shapes, bytes), direction and task."""
    digest = xxhash.xxh3_128()
    facts: dict[str, Any] = {
        "directed": graph.directed,
        "task": graph.task.as_dict() if graph.task else None,
        "categories": [graph.x_categories, graph.edge_categories],
    }
    if graph.x_names or graph.edge_names:
        facts["names"] = [graph.x_names, graph.edge_names]
    digest.update(digest_of(facts).encode())
    for name, array in graph.arrays().items():
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _feature_facts(
    value: Any, categories: tuple[int, ...] | None, names: tuple[str, ...] | None
) -> FeatureFacts | None:
    return None if value is None else FeatureFacts(value.dtype.name, value.shape[1], categories, names)


def _without_unset(value: Any) -> Any:
    """A JSON value without names and ids that are not there: a store that has none reads as it always did."""
    if not isinstance(value, dict):
        return value
    optional = ("names", "class_names", "node_id_bytes", "graph_id_bytes")
    return {key: _without_unset(inner) for key, inner in value.items() if inner or key not in optional}
