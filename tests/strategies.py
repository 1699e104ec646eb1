"""Graphs for property tests: small, and full of the corners that break code."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from gmn_pipeline import Graph, Task


@st.composite
def graphs(draw: Any, *, max_nodes: int = 12, many: bool | None = None, directed: bool | None = None) -> Graph:
    """A graph: maybe empty, disconnected, directed, with self-loops, parallel edges, features, or many in one."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    is_directed = draw(st.booleans()) if directed is None else directed
    is_many = draw(st.booleans()) if many is None else many
    sizes = (
        draw(st.lists(st.integers(0, max_nodes), min_size=1, max_size=4))
        if is_many
        else [draw(st.integers(0, max_nodes))]
    )
    density = draw(st.sampled_from([0.0, 0.1, 0.3, 1.0]))
    edges, offset = [np.zeros((0, 2), dtype=np.int64)], 0
    for size in sizes:
        pairs = np.argwhere(rng.random((size, size)) < density) + offset
        edges += [pairs, pairs[: len(pairs) // 4]]  # some twice
        offset += size
    given = np.concatenate(edges)
    with_edge_features, with_x = draw(st.booleans()), draw(st.booleans())
    return Graph.from_edges(
        given,
        offset,
        directed=is_directed,
        keep_self_loops=draw(st.booleans()),
        keep_duplicates=draw(st.booleans()),
        edge_attr=rng.normal(size=(len(given), 2)).astype(np.float32) if with_edge_features else None,
        x=rng.integers(0, 5, size=(offset, 2)) if with_x else None,
        graph_ptr=np.concatenate([[0], np.cumsum(sizes)]) if is_many else None,
        y=rng.integers(0, 3, size=offset),
        splits=rng.integers(0, 4, size=(2, offset)),
        task=Task.of("node", "multiclass", 3),
    )


def settings(max_m: int = 4, max_M: int = 3, max_s: int = 3) -> st.SearchStrategy[tuple[int, int, int]]:
    """(m, M, s), node tokens included."""
    return st.one_of(
        st.just((0, 0, 0)),
        st.tuples(st.integers(1, max_m), st.integers(1, max_M), st.integers(1, max_s)),
    )
