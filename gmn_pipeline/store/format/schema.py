"""Token store format 1: every array's name, type rule and shape, in one place.

`docs/store-format.md` explains them; a test holds the two together. Writer, reader and verifier know arrays only
through these tables.
"""

from dataclasses import dataclass

import numpy as np

from gmn_pipeline.errors import StoreError
from gmn_pipeline.graph import id_dtype
from gmn_pipeline.store.format.array_spec import ArraySpec, array_spec
from gmn_pipeline.store.format.encodings import ENCODINGS
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.store.format.token_settings import smallest_unsigned

__all__ = ["ArraySpec", "BlockFacts", "block_group", "block_name", "block_specs", "fixed_groups", "graph_specs"]

PARENTS = ("encodings", "orderings", "tokens")
"""Groups that hold only groups."""


@dataclass(frozen=True)
class BlockFacts:
    """The sizes of one block of tokens, kept in its group's attributes."""

    first_node: int
    nodes: int
    token_nodes: int
    token_edges: int


def graph_specs(manifest: Manifest) -> dict[str, ArraySpec]:
    """Arrays of `graph/`."""
    facts, task = manifest.graph, manifest.task
    specs = {
        "indptr": array_spec(np.int64, facts.nodes + 1),
        "indices": array_spec(id_dtype(facts.nodes), facts.slots),
    }
    if facts.x is not None:
        specs["x"] = array_spec(facts.x.dtype, facts.nodes, facts.x.columns)
    if facts.edge_attr is not None:
        specs["edge_attr"] = array_spec(facts.edge_attr.dtype, facts.slots, facts.edge_attr.columns)
    if facts.labels and task is not None:
        whole = task.kind in ("multiclass", "binary")
        specs["y"] = array_spec(np.int64, facts.items) if whole else array_spec(np.float32, facts.items, task.classes)
    if facts.splits:
        specs["splits"] = array_spec(np.uint8, facts.splits, facts.items)
    if facts.many:
        specs["graph_ptr"] = array_spec(np.int64, facts.graphs + 1)
    if facts.pairs:
        specs["pairs"] = array_spec(id_dtype(facts.nodes), facts.items, 2)
    for name, count, size in (
        ("node_id", facts.nodes, facts.node_id_bytes),
        ("graph_id", facts.graphs, facts.graph_id_bytes),
    ):
        if size:
            specs[f"{name}_ptr"], specs[f"{name}_bytes"] = array_spec(np.int64, count + 1), array_spec(np.uint8, size)
    return specs


def encoding_specs(manifest: Manifest, name: str) -> dict[str, ArraySpec]:
    """Arrays of `encodings/NAME/`."""
    if name not in ENCODINGS:
        raise StoreError(
            f"the store has an encoding '{name}' that is unknown here; import the package that adds it, or update"
        )
    try:
        return ENCODINGS[name].arrays(manifest.graph, manifest.encodings[name])
    except (KeyError, TypeError, ValueError):
        raise StoreError(f"the manifest's settings of encoding '{name}' are not valid; tokenize again") from None


def ordering_specs(manifest: Manifest) -> dict[str, ArraySpec]:
    """Arrays of `orderings/NAME/`: nodes by ascending importance, and each node's dense rank (equal where tied)."""
    n = manifest.graph.nodes
    return {"permutation": array_spec(id_dtype(n), n), "ranks": array_spec(id_dtype(n), n)}


def block_index_specs(manifest: Manifest) -> dict[str, ArraySpec]:
    """Arrays of `tokens/` itself: where each block's nodes begin."""
    return {"block_ptr": array_spec(np.int64, manifest.blocks + 1)}


def block_specs(manifest: Manifest, facts: BlockFacts) -> dict[str, ArraySpec]:
    """Arrays of `tokens/bNNNNN/`, for a block of B nodes with T = B * L tokens."""
    settings, graph = manifest.tokens, manifest.graph
    tokens = facts.nodes * settings.sequence_length
    local = settings.local_dtype
    specs = {
        "nodes": array_spec(id_dtype(graph.nodes), facts.token_nodes),
        "node_ptr": array_spec(id_dtype(facts.token_nodes), tokens + 1),
        "edges": array_spec(local, facts.token_edges, 2),
        "edge_ptr": array_spec(id_dtype(facts.token_edges), tokens + 1),
        "walks": array_spec(local, facts.nodes, settings.walk_entries),
        "sizes": array_spec(local, tokens, settings.M),
        "edge_sizes": array_spec(smallest_unsigned(settings.max_token_edges(graph.directed)), tokens, settings.M),
    }
    if graph.edge_attr is not None:
        specs["edge_slots"] = array_spec(id_dtype(graph.slots), facts.token_edges, 1 if graph.directed else 2)
    return specs


def fixed_groups(manifest: Manifest) -> dict[str, dict[str, ArraySpec]]:
    """Every group that is not a block of tokens, with its arrays."""
    groups = {"graph": graph_specs(manifest)}
    groups.update({f"encodings/{name}": encoding_specs(manifest, name) for name in manifest.encodings})
    groups.update({f"orderings/{name}": ordering_specs(manifest) for name in manifest.orderings})
    groups["tokens/index"] = block_index_specs(manifest)
    return groups


def all_groups(manifest: Manifest) -> list[str]:
    """Every group with arrays; those that are not blocks first."""
    return [*fixed_groups(manifest), *(block_group(number) for number in range(manifest.blocks))]


def block_name(number: int) -> str:
    return f"b{number:05d}"


def block_group(number: int) -> str:
    return f"tokens/{block_name(number)}"
