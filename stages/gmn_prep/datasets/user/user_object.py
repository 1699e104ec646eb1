"""A graph that the user has in memory, read as a file of it would be."""

from pathlib import Path
from typing import Any

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph
from gmn_prep.datasets.entry import DatasetOptions, LoadedDataset

FOREIGN = {
    "networkx": "give torch_geometric.utils.from_networkx(graph)",
    "scipy": "give torch_geometric.utils.from_scipy_sparse_matrix(matrix)[0] as {'edge_index': ...}",
    "pandas": "write it to a .csv or .parquet file, and give its path",
}
"""What to do with graphs of other libraries."""


def load_object(data: Any, options: DatasetOptions | None = None, name: str = "data") -> LoadedDataset:
    """A `Graph` as it is; a PyG `Data`, a list or `Dataset` of them, or a dict of arrays as its file would be read.

    name: what its store is called, and what messages call it. Raises DatasetError in one line.
    """
    if isinstance(data, Graph):
        return LoadedDataset(name, data.check())
    from gmn_prep.datasets.user.torch_file import arrays_of_object
    from gmn_prep.datasets.user.user_graph import graph_from_arrays

    hint = next((hint for module, hint in FOREIGN.items() if type(data).__module__.startswith(module)), None)
    if hint is not None:
        raise DatasetError(f"{name} is a {type(data).__name__} of {type(data).__module__.split('.')[0]}; {hint}")
    if hasattr(data, "get") and hasattr(data, "len") and not hasattr(data, "edge_index"):
        data = [data[i] for i in range(len(data))]  # a PyG Dataset
    arrays, notes = arrays_of_object(data, Path(name))
    graph, more = graph_from_arrays(arrays, options or DatasetOptions(), Path(name))
    return LoadedDataset(name, graph, (*notes, *more))
