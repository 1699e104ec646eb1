"""A graph that the user has in memory, read as a file of it would be."""

from pathlib import Path
from typing import Any

from gmn_pipeline.graph import Graph
from gmn_prep.datasets.entry import DatasetOptions, LoadedDataset


def load_object(data: Any, options: DatasetOptions | None = None, name: str = "data") -> LoadedDataset:
    """A `Graph` as it is; a PyG `Data`, a list of them, or a dict of arrays or tensors as its file would be read.

    name: what its store is called, and what messages call it. Raises DatasetError in one line.
    """
    if isinstance(data, Graph):
        return LoadedDataset(name, data.check())
    from gmn_prep.datasets.user.torch_file import arrays_of_object
    from gmn_prep.datasets.user.user_graph import graph_from_arrays

    arrays, notes = arrays_of_object(data, Path(name))
    graph, more = graph_from_arrays(arrays, options or DatasetOptions(), Path(name))
    return LoadedDataset(name, graph, (*notes, *more))
