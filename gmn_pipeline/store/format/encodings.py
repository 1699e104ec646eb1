"""The positional encodings a store may hold: their arrays, and what a model sees of them. Imports nothing heavy.

How one is computed is the other half of its entry, in `gmn_prep.encodings`. `ENCODINGS.add(...)` takes further ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gmn_pipeline.tables import Table

if TYPE_CHECKING:
    from gmn_pipeline.store.format.array_spec import ArraySpec
    from gmn_pipeline.store.format.manifest import GraphFacts, Scalar

    Settings = Mapping[str, Scalar]


def longer_serves(has: "Settings", wants: "Settings") -> bool:
    """Encodings are stored lowest first, so one of the same mode and seed serves every shorter one."""
    if int(has["k"] or 0) < int(wants["k"] or 0):
        return False
    if wants.get("mode", "auto") != "auto" and has.get("mode") != wants["mode"]:
        return False
    return has.get("seed") in (None, wants.get("seed", has.get("seed")))


@dataclass(frozen=True)
class EncodingFormat:
    """What a store holds of one encoding."""

    name: str
    arrays: "Callable[[GraphFacts, Settings], dict[str, ArraySpec]]"
    """Every array, from the graph's sizes and the encoding's settings in the manifest."""
    columns: str
    """The array that a model sees: (n, k) float32, a row per node."""
    free_signs: bool = False
    """Whether the sign of a column means nothing within a graph: training draws it anew."""
    may_be_nan: tuple[str, ...] = ()
    """Arrays with NaN where a graph is too small; all others are finite."""
    serves: "Callable[[Settings, Settings], bool]" = longer_serves
    """Whether what a store has (first) serves what is wanted (second)."""


def laplacian_arrays(graph: "GraphFacts", settings: "Settings") -> "dict[str, ArraySpec]":
    """Unit eigenvectors, and per graph their eigenvalues and residuals."""
    from gmn_pipeline.store.format.array_spec import array_spec

    k = int(settings["k"] or 0)
    per_graph = array_spec("float32", graph.graphs, k)
    return {"vectors": array_spec("float32", graph.nodes, k), "values": per_graph, "residuals": per_graph}


def random_walk_arrays(graph: "GraphFacts", settings: "Settings") -> "dict[str, ArraySpec]":
    """Return probabilities, and their standard errors where they are estimated."""
    from gmn_pipeline.store.format.array_spec import array_spec

    per_node = array_spec("float32", graph.nodes, int(settings["k"] or 0))
    return {"values": per_node, "stderr": per_node} if settings.get("mode") == "estimate" else {"values": per_node}


ENCODINGS: Table[EncodingFormat] = Table(
    "encoding",
    [
        EncodingFormat("laplacian", laplacian_arrays, "vectors", free_signs=True, may_be_nan=("values", "residuals")),
        EncodingFormat("random_walk", random_walk_arrays, "values"),
    ],
)
