"""A graph from a table of edges that need not fit into memory: sorted on disk, written as CSR arrays, mapped."""

from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph, id_dtype
from gmn_pipeline.graph.check import check_values
from gmn_pipeline.graph.edges import EdgeReport, small_degrees
from gmn_pipeline.types import Array
from gmn_prep.datasets.entry import DatasetOptions, Scratch
from gmn_prep.datasets.user.tables.edge_list_file import find_node_table
from gmn_prep.datasets.user.tables.edge_query import EdgeQuery
from gmn_prep.datasets.user.tables.node_stream import NodeStream
from gmn_prep.datasets.user.user_graph import graph_from_arrays
from gmn_prep.datasets.user.user_task import parse_task


def check_options(options: DatasetOptions) -> None:
    """DatasetError for what needs the edges in memory."""
    links = parse_task(options.task)[0] == "link"
    for option, given in (("--directed", options.directed), ("--task link", links)):
        if given:
            raise DatasetError(f"{option} and --memory do not go together; leave one out")


def read_sorted_edges(path: Path, options: DatasetOptions, scratch: Scratch) -> tuple[Graph, tuple[str, ...]]:
    """The graph on mapped arrays, and notes: those of the plain reader for the same tables. Raises DatasetError."""
    check_options(options)
    notes: list[str] = []
    place = find_node_table(path, options)
    nodes = None if place is None else NodeStream(place, options, notes)
    with EdgeQuery(path, options, scratch, notes, nodes.features if nodes else None) as query:
        arrays = {} if nodes is None else nodes.read(scratch.folder)
        fields = _sort(query, scratch.folder, arrays.get("num_nodes"))
    arrays |= {"edges": np.zeros((0, 2), np.int64), "num_nodes": fields["indptr"].size - 1}

    def build(_edges: Array, _nodes: int, **others: Any) -> Graph:
        graph = Graph(**fields, **others)
        check_values(graph)  # rows are sorted, and reverses are there
        return graph

    graph, more = graph_from_arrays(arrays, options, path, build)
    return graph, (*notes, *more)


def _sort(query: EdgeQuery, folder: Path, nodes: int | None) -> dict[str, Any]:
    """`indptr` and `indices`, mapped, and the `report`; nodes: how many there are, if a table lists them."""
    facts, name = query.facts(), query.path.name
    n = facts.most + 1 if nodes is None else nodes
    if facts.most >= n:
        raise DatasetError(f"{name} names node '{facts.most}', which the table of nodes does not list")
    indptr: Any = np.lib.format.open_memmap(folder / "indptr.npy", "w+", np.int64, (n + 1,))
    slots, before, tally = 0, np.full(2, -1, dtype=np.int64), np.zeros(2, dtype=np.int64)
    with (folder / "indices.bin").open("wb") as file:
        for sources, marked in query.sorted_slots(facts.most):
            kept = np.empty(sources.size, dtype=id_dtype(n))
            count = keep_first_slots(sources, marked, before, tally, indptr, kept)
            file.write(kept[:count].data)
            slots += count
    np.cumsum(indptr, out=indptr)
    if nodes is None and n > 1000 + 2 * int(np.count_nonzero(small_degrees(indptr))):
        query.refuse_names(facts.most)
    indptr.flush()
    indices: Any = (
        np.memmap(folder / "indices.bin", id_dtype(n), "r", shape=(slots,)) if slots else np.empty(0, id_dtype(n))
    )
    report = EdgeReport(facts.rows, facts.loops, int(tally[0]), int(tally[1]))
    return {"indptr": np.load(folder / "indptr.npy", mmap_mode="r"), "indices": indices, "report": report}


@njit(cache=True, nogil=True)
def keep_first_slots(sources, marked, before, tally, counts, kept):
    """Of sorted slots, keep the first of equal ones; returns how many.

    marked: 2 * target, plus 1 for a reverse. before: the last slot of the batch before, and then of this one. tally:
    duplicates and reverses so far. counts: (n+1,), counts[v + 1] grows by the slots kept of node v.
    """
    count = 0
    source, target = before[0], before[1]
    for i in range(sources.size):
        same = sources[i] == source and (marked[i] >> 1) == target
        source, target = np.int64(sources[i]), np.int64(marked[i] >> 1)
        if same:
            tally[0] += 1 - (marked[i] & 1)  # given before, and given again
            continue
        tally[1] += marked[i] & 1
        kept[count] = target
        counts[source + 1] += 1
        count += 1
    before[0], before[1] = source, target
    return count
