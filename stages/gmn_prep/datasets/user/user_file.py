"""The user's own files: which reader serves which suffix, and what a file's content is known by."""

from pathlib import Path
from typing import Any

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.public.raw_files import digest_files
from gmn_prep.datasets.user.edge_list_file import TABLE_SUFFIXES, find_node_table, read_edge_list
from gmn_prep.datasets.user.npz_file import read_npz
from gmn_prep.datasets.user.torch_file import read_torch

READERS = {
    ".npz": read_npz,
    ".pt": read_torch,
    ".pth": read_torch,
    **dict.fromkeys(TABLE_SUFFIXES, read_edge_list),
}


def load_user_file(path: Path, options: DatasetOptions) -> tuple[Graph, tuple[str, ...]]:
    """The graph, and notices."""
    from gmn_prep.datasets.user.user_graph import graph_from_arrays

    check_user_file(path, options)
    return graph_from_arrays(READERS[path.suffix](path, options), options, path)


def identify_user_file(path: Path, options: DatasetOptions) -> dict[str, Any]:
    """What the graph depends on: the bytes of the file and of its node table, and the options."""
    check_user_file(path, options)
    files = [("edges", path)]
    if path.suffix in TABLE_SUFFIXES:
        table = find_node_table(path, options)
        files += [("nodes", table)] if table else []
    identity: dict[str, Any] = {"dataset": path.stem, "format": path.suffix, "content": digest_files(files)}
    said = {name: getattr(options, name) for name in ("directed", "task", "metric", "classes")}
    return identity | {"seed": options.seed} | {name: value for name, value in said.items() if value}


def check_user_file(path: Path, options: DatasetOptions) -> None:
    if not path.exists():
        raise DatasetError(f"{path} does not exist")
    if path.suffix not in READERS or not path.is_file():
        what = "a folder" if path.is_dir() else f"a '{path.suffix}' file"
        raise DatasetError(f"{path} is {what}; a dataset of your own is one of {', '.join(READERS)}")
    for name in ("nodes", "graphs"):
        if getattr(options, name) is not None:
            raise DatasetError(f"--{name} sets the size of a generated dataset; {path.name} has its own")
    if options.node_table is not None and path.suffix not in TABLE_SUFFIXES:
        raise DatasetError(f"--node-table goes with a table of edges ({', '.join(TABLE_SUFFIXES)}), not {path.name}")
