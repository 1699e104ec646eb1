"""Many graphs in tables: a column of the nodes says which graph each is of, and graphs may have a table of their own.

nodes.csv    id, graph, ...: nodes are put in the order of their graphs, and of their ids in each
graphs.csv   id, [label], [split]
"""

from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets.user.tables.table_columns import keep_ids, read_ids, sort_ids, sort_rows, take_column
from gmn_prep.datasets.user.tables.table_file import UserTable
from gmn_prep.datasets.user.tables.table_path import find_beside, stem


def find_graph_table(path: Path) -> Path | None:
    """`graphs` beside `edges`, `NAME_graphs` beside `NAME_edges` or `NAME`."""
    name = stem(path).lower()
    stems = [name.removesuffix("edges") + "graphs"] if name.endswith("edges") else []
    return find_beside(path, [*stems, f"{name}_graphs"])


def group_nodes(nodes: UserTable, graphs: UserTable | None) -> dict[str, Any]:
    """Put the rows of both in the order of graphs, by id; returns `graph_ptr` and `graph_ids`, or nothing."""
    import pyarrow.compute as pc

    column = take_column(nodes, "graph", optional=True)
    if column is None:
        if graphs is not None:
            raise DatasetError(f"{graphs.path.name} lists graphs, and {nodes.path.name} has no column 'graph'; add it")
        return {}
    of_node = read_ids(column, nodes)
    if graphs is None:
        ids = pc.unique(of_node)
        ids = ids.take(sort_ids(ids))
    else:
        sort_rows(graphs, "id")
        ids = read_ids(take_column(graphs, "id"), graphs)
    if len(pc.unique(ids)) != len(ids):
        raise DatasetError(f"{graphs.path.name if graphs else nodes.path.name} lists a graph more than once")
    number = pc.index_in(of_node, value_set=ids)
    if number.null_count:
        stranger = of_node.filter(pc.is_null(number))[0].as_py()
        raise DatasetError(f"{nodes.path.name} names graph '{stranger}', which no table of graphs lists")
    numbers = np.asarray(number).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    nodes.columns = {name: values.take(order) for name, values in nodes.columns.items()}
    sizes = np.bincount(numbers, minlength=len(ids))
    return {"graph_ptr": np.concatenate([[0], np.cumsum(sizes)]), "graph_ids": keep_ids(ids)}
