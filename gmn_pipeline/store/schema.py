"""Token store format 1: every array's name, type rule and shape, in one place.

`docs/store-format.md` explains them; a test holds the two together. Writer, reader and verifier know arrays only
through these tables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmn_pipeline.graph import id_dtype
from gmn_pipeline.store.manifest import Manifest
from gmn_pipeline.store.token_settings import smallest_unsigned

Shape = tuple[int, ...]
ENCODINGS = ("laplacian", "random_walk")


@dataclass(frozen=True)
class ArraySpec:
    """What one array must be."""

    dtype: np.dtype[Any]
    shape: Shape


@dataclass(frozen=True)
class BlockFacts:
    """The sizes of one block of tokens, kept in its group's attributes."""

    first_node: int
    nodes: int
    token_nodes: int
    token_edges: int


def _spec(dtype: Any, *shape: int) -> ArraySpec:
    return ArraySpec(np.dtype(dtype), shape)


def graph_specs(manifest: Manifest) -> dict[str, ArraySpec]:
    """Arrays of `graph/`."""
    facts, task = manifest.graph, manifest.task
    specs = {
        "indptr": _spec(np.int64, facts.nodes + 1),
        "indices": _spec(id_dtype(facts.nodes), facts.slots),
    }
    if facts.x is not None:
        specs["x"] = _spec(facts.x.dtype, facts.nodes, facts.x.columns)
    if facts.edge_attr is not None:
        specs["edge_attr"] = _spec(facts.edge_attr.dtype, facts.slots, facts.edge_attr.columns)
    if facts.labels and task is not None:
        whole = task.kind in ("multiclass", "binary")
        specs["y"] = _spec(np.int64, facts.items) if whole else _spec(np.float32, facts.items, task.classes)
    if facts.splits:
        specs["splits"] = _spec(np.uint8, facts.splits, facts.items)
    if facts.many:
        specs["graph_ptr"] = _spec(np.int64, facts.graphs + 1)
    if facts.pairs:
        specs["pairs"] = _spec(id_dtype(facts.nodes), facts.items, 2)
    for name, count, size in (
        ("node_id", facts.nodes, facts.node_id_bytes),
        ("graph_id", facts.graphs, facts.graph_id_bytes),
    ):
        if size:
            specs[f"{name}_ptr"], specs[f"{name}_bytes"] = _spec(np.int64, count + 1), _spec(np.uint8, size)
    return specs


def laplacian_specs(manifest: Manifest) -> dict[str, ArraySpec]:
    """Arrays of `encodings/laplacian/`: unit eigenvectors, and per graph their eigenvalues and residuals."""
    k = _width(manifest, "laplacian")
    per_graph = _spec(np.float32, manifest.graph.graphs, k)
    return {
        "vectors": _spec(np.float32, manifest.graph.nodes, k),
        "values": per_graph,
        "residuals": per_graph,
    }


def random_walk_specs(manifest: Manifest) -> dict[str, ArraySpec]:
    """Arrays of `encodings/random_walk/`: return probabilities, and their standard errors where estimated."""
    per_node = _spec(np.float32, manifest.graph.nodes, _width(manifest, "random_walk"))
    estimated = manifest.encodings["random_walk"].get("mode") == "estimate"
    return {"values": per_node, "stderr": per_node} if estimated else {"values": per_node}


def ordering_specs(manifest: Manifest) -> dict[str, ArraySpec]:
    """Arrays of `orderings/NAME/`: nodes by ascending importance, and each node's dense rank (equal where tied)."""
    n = manifest.graph.nodes
    return {"permutation": _spec(id_dtype(n), n), "ranks": _spec(np.int32, n)}


def block_index_specs(manifest: Manifest) -> dict[str, ArraySpec]:
    """Arrays of `tokens/` itself: where each block's nodes begin."""
    return {"block_ptr": _spec(np.int64, manifest.blocks + 1)}


def block_specs(manifest: Manifest, facts: BlockFacts) -> dict[str, ArraySpec]:
    """Arrays of `tokens/bNNNNN/`, for a block of B nodes with T = B * L tokens."""
    settings, graph = manifest.tokens, manifest.graph
    tokens = facts.nodes * settings.sequence_length
    local = settings.local_dtype
    specs = {
        "nodes": _spec(id_dtype(graph.nodes), facts.token_nodes),
        "node_ptr": _spec(id_dtype(facts.token_nodes), tokens + 1),
        "edges": _spec(local, facts.token_edges, 2),
        "edge_ptr": _spec(id_dtype(facts.token_edges), tokens + 1),
        "walks": _spec(local, facts.nodes, settings.walk_entries),
        "sizes": _spec(local, tokens, settings.M),
        "edge_sizes": _spec(smallest_unsigned(settings.max_token_edges(graph.directed)), tokens, settings.M),
    }
    if graph.edge_attr is not None:
        specs["edge_slots"] = _spec(id_dtype(graph.slots), facts.token_edges, 1 if graph.directed else 2)
    return specs


def fixed_groups(manifest: Manifest) -> dict[str, dict[str, ArraySpec]]:
    """Every group that is not a block of tokens, with its arrays."""
    makers: dict[str, Callable[[Manifest], dict[str, ArraySpec]]] = {
        "laplacian": laplacian_specs,
        "random_walk": random_walk_specs,
    }
    groups = {"graph": graph_specs(manifest)}
    groups.update({f"encodings/{name}": makers[name](manifest) for name in manifest.encodings})
    groups.update({f"orderings/{name}": ordering_specs(manifest) for name in manifest.orderings})
    groups["tokens/index"] = block_index_specs(manifest)
    return groups


def block_name(number: int) -> str:
    return f"b{number:05d}"


def _width(manifest: Manifest, encoding: str) -> int:
    return int(manifest.encodings[encoding]["k"] or 0)
