"""Any graph as a link task: which pairs of nodes are linked?

Of the edges, whatever their direction, 85% are for training, 5% for validation and 10% for testing. Targets are all
edges for validation and testing and 30% of those for training; they are taken out of the graph before anything walks
on it. Beside each target stands a pair of nodes of the same graph that no edge links. docs/decisions/0004 says why.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, bounded, child_key, child_keys, key_path, mix64
from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array, IntArray
from gmn_prep.datasets.splits import draw_splits, first_by_key
from gmn_prep.datasets.wanted_task import SHARES, TRAINING_TARGETS

TRIES = 1000
"""Draws for one unlinked pair. Even where 99% of the pairs are linked, one in 20,000 searches fails."""
TARGET, FIRST_END, UNLINKED = range(3)


def hold_out_links(
    graph: Graph, seed: int, metric: str = "roc_auc", *, tries: int = TRIES
) -> tuple[Graph, tuple[str, ...]]:
    """`graph` without its target edges, with pairs, (items, 2), and y, 1 for a target and 0 for an unlinked pair.

    Features stay, labels and splits go. Self-loops stay and are no targets; parallel edges are one edge. Returns
    the graph and notices. Raises DatasetError where a part of the split would be empty.
    """
    edges, edge_of_slot = distinct_edges(graph)  # (E, 2), (slots,)
    part = choose_targets(len(edges), seed)
    target = np.flatnonzero(part)
    positive = _shuffle_ends(edges[target], seed)
    negative = draw_unlinked_pairs(graph, edges[target, 0], seed, tries)
    has_negative = negative[:, 0] >= 0
    held_out = np.concatenate([part > 0, [False]])  # the last stands for self-loops, which have edge -1
    kept = ~held_out[edge_of_slot]
    links = graph.replace(
        indptr=np.concatenate([[0], np.cumsum(kept)])[graph.indptr],
        indices=graph.indices[kept],
        edge_attr=None if graph.edge_attr is None else graph.edge_attr[kept],
        pairs=np.concatenate([positive, negative[has_negative]]),
        y=np.arange(target.size + np.count_nonzero(has_negative)) < target.size,
        splits=np.concatenate([part[target], part[target][has_negative]])[None],
        task=Task.of("link", "binary", 2, metric),
        report=None,
    )
    counts = " + ".join(f"{np.count_nonzero(part == code):,}" for code in (TRAIN, VAL, TEST))
    notices = [f"links: {counts} of {len(edges):,} edges held out for training, validation and testing"]
    if not has_negative.all():
        short = np.count_nonzero(~has_negative)
        notices.append(f"{short:,} of them have no unlinked pair beside them: too few of their nodes are unlinked")
    return links.check(), tuple(notices)


def distinct_edges(graph: Graph) -> tuple[IntArray, IntArray]:
    """The linked pairs of different nodes, (E, 2), smaller id first and sorted; and each slot's, -1 for a loop."""
    n = max(graph.num_nodes, 1)
    source, target = graph.slot_sources.astype(np.int64), graph.indices.astype(np.int64)
    edge_of_slot = np.full(graph.num_slots, -1, dtype=np.int64)
    proper = source != target
    keys = (np.minimum(source, target) * n + np.maximum(source, target))[proper]
    distinct, edge_of_slot[proper] = np.unique(keys, return_inverse=True)
    return np.stack(np.divmod(distinct, n), axis=1), edge_of_slot


def choose_targets(edges: int, seed: int) -> Array:
    """(edges,) uint8: the part of the split each edge is a target of, 0 for those that stay in the graph."""
    part = draw_splits(edges, SHARES, seed)[0]
    training = np.flatnonzero(part == TRAIN)
    keys = child_keys(key_path(seed, Purpose.LINKS, TARGET), edges)[training]
    part[training[~first_by_key(keys, round(TRAINING_TARGETS * training.size))]] = 0
    if np.unique(part[part > 0]).size < 3:
        raise DatasetError(f"{edges:,} edges are too few: training, validation and testing need held-out edges")
    return part


def _shuffle_ends(pairs: IntArray, seed: int) -> IntArray:
    """Either end first, by a draw: which one has the smaller id must not matter."""
    swap = child_keys(key_path(seed, Purpose.LINKS, FIRST_END), len(pairs)) & np.uint64(1) == 1
    return np.where(swap[:, None], pairs[:, ::-1], pairs)


def draw_unlinked_pairs(graph: Graph, beside: IntArray, seed: int, tries: int) -> IntArray:
    """(len(beside), 2) int64: for each node of `beside`, a pair of nodes of its graph that are not linked.

    Every pair of the graph is as likely as any other. No pair comes twice; -1 where none was found.
    """
    pointer = np.array([0, graph.num_nodes]) if graph.graph_ptr is None else graph.graph_ptr
    owner = np.searchsorted(pointer, beside, side="right") - 1
    first, size = pointer[owner], np.diff(pointer)[owner]
    out = np.full((beside.size, 2), -1, dtype=np.int64)
    seen = np.full(1 << (2 * beside.size).bit_length(), -1, dtype=np.int64)
    key = key_path(seed, Purpose.LINKS, UNLINKED)
    fill_unlinked_pairs(key, first, size.astype(np.uint64), graph.indptr, graph.indices, tries, seen, out)
    return out


@njit(cache=True, nogil=True)
def fill_unlinked_pairs(key, first, size, indptr, indices, tries, seen, out):  # type: ignore[no-untyped-def]
    """seen: a hash table of the pairs drawn, at most half full."""
    n = indptr.size - 1
    for i in range(out.shape[0]):
        item = child_key(key, np.uint64(i))
        for attempt in range(tries):
            draw = child_key(item, np.uint64(attempt))
            u = first[i] + np.int64(bounded(child_key(draw, np.uint64(0)), size[i]))
            v = first[i] + np.int64(bounded(child_key(draw, np.uint64(1)), size[i]))
            if u == v or has_slot(indptr, indices, u, v) or has_slot(indptr, indices, v, u):
                continue
            if add_key(seen, min(u, v) * n + max(u, v)):
                out[i, 0], out[i, 1] = u, v
                break


@njit(cache=True, nogil=True)
def has_slot(indptr, indices, u, v):  # type: ignore[no-untyped-def]
    """Whether v is among the sorted neighbours of u."""
    low, high = indptr[u], indptr[u + 1]
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low < indptr[u + 1] and indices[low] == v


@njit(cache=True, nogil=True)
def add_key(seen, key):  # type: ignore[no-untyped-def]
    """Add a key to a hash table whose size is a power of two; False if it was there."""
    mask = np.uint64(seen.size - 1)
    place = mix64(np.uint64(key)) & mask
    while seen[place] != -1:
        if seen[place] == key:
            return False
        place = (place + np.uint64(1)) & mask
    seen[place] = key
    return True
