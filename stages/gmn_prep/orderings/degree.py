"""Order by degree: the paper's default. Costs one sort."""

from gmn_pipeline.graph import Graph
from gmn_pipeline.graph.edges import small_degrees
from gmn_pipeline.types import Array


def degree_keys(graph: Graph, _threads: int = 1) -> Array:
    """(n,) slots per node: repeated edges count, and in a directed graph the out-edges."""
    return small_degrees(graph.indptr)
