"""Node orderings by importance: a new one is a file with a function and a line in LEVELS."""

from collections.abc import Callable

from gmn_pipeline.errors import ConfigError, nearest
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array
from gmn_prep.orderings.degree import degree_levels
from gmn_prep.orderings.eigenvector import eigenvector_levels
from gmn_prep.orderings.k_core import k_core_levels
from gmn_prep.orderings.pagerank import pagerank_levels
from gmn_prep.orderings.random import random_levels
from gmn_prep.orderings.tie_breaking import Ordering, order_by_levels

LEVELS: dict[str, Callable[[Graph, int], Array]] = {
    "degree": degree_levels,
    "pagerank": pagerank_levels,
    "k-core": k_core_levels,
    "eigenvector": eigenvector_levels,
    "random": random_levels,
}
"""Name -> function of the graph and the number of threads.

It gives (n,) non-negative integers below 2**32 that rise with importance; equal ones are ties.
"""

__all__ = ["LEVELS", "Ordering", "compute_ordering"]


def compute_ordering(graph: Graph, name: str, *, seed: int = 0, threads: int = 1) -> Ordering:
    """Nodes by graph, then by ascending importance, ties in a random order keyed by `seed`.

    The same for any number of threads. Raises ConfigError.
    """
    if name not in LEVELS:
        allowed = tuple(LEVELS)
        raise ConfigError(f"ordering '{name}' is unknown; it is one of {', '.join(allowed)}{nearest(name, allowed)}")
    return order_by_levels(graph, LEVELS[name](graph, threads), seed)
