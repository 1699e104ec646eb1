"""Node orderings by importance: a new one is a file with a function, and a line in ORDERINGS."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gmn_pipeline.tables import Table, load_code

if TYPE_CHECKING:
    from gmn_pipeline.graph import Graph
    from gmn_prep.orderings.tie_breaking import Ordering


@dataclass(frozen=True)
class OrderingEntry:
    """One line of the table."""

    name: str
    keys: str | Callable[..., Any]
    """A function of the graph and the number of threads, or its place as `package.module:name`.

    It gives (n,) non-negative integers below 2**32 that rise with importance; equal ones are ties.
    """
    bounded: bool = False
    """Whether --memory can bound it: nothing is held in memory but a few numbers per node."""


ORDERINGS: Table[OrderingEntry] = Table(
    "ordering",
    [
        OrderingEntry("degree", "gmn_prep.orderings.degree:degree_keys", bounded=True),
        OrderingEntry("pagerank", "gmn_prep.orderings.pagerank:pagerank_keys"),
        OrderingEntry("k-core", "gmn_prep.orderings.k_core:k_core_keys"),
        OrderingEntry("eigenvector", "gmn_prep.orderings.eigenvector:eigenvector_keys"),
        OrderingEntry("spectral", "gmn_prep.orderings.spectral:spectral_keys"),
        OrderingEntry("random", "gmn_prep.orderings.random:random_keys", bounded=True),
    ],
)


def compute_ordering(graph: "Graph", name: str, *, seed: int = 0, threads: int = 1) -> "Ordering":
    """Nodes by graph, then by ascending importance, ties in a random order keyed by `seed`.

    The same for any number of threads. Raises ConfigError.
    """
    from gmn_prep.orderings.tie_breaking import order_by_keys

    return order_by_keys(graph, load_code(ORDERINGS.find(name).keys)(graph, threads), seed)
