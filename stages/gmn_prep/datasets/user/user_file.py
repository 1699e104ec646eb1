"""The user's own files: which reader serves which suffix, and what a file's content is known by."""

from pathlib import Path
from typing import Any

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.public.raw.raw_files import digest_files
from gmn_prep.datasets.user.npz_file import read_npz
from gmn_prep.datasets.user.tables.edge_list_file import find_node_table, read_edge_list
from gmn_prep.datasets.user.tables.graph_table import find_graph_table
from gmn_prep.datasets.user.tables.table_path import (
    SUFFIXES,
    TABLE_SUFFIXES,
    ending,
    list_files,
    name_files,
    say_missing,
)
from gmn_prep.datasets.user.torch_file import read_torch
from gmn_prep.tokenize_settings import TABLE_OPTIONS

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
    if options.scratch is not None:
        from gmn_prep.datasets.user.tables.sorted_edges import read_sorted_edges

        return read_sorted_edges(path, options, options.scratch)
    arrays, notes = READERS[ending(path)](path, options)
    graph, more = graph_from_arrays(arrays, options, path)
    return graph, (*notes, *more)


def identify_user_file(path: Path, options: DatasetOptions) -> dict[str, Any]:
    """What the graph depends on: the bytes of the file and of its node table, and the options."""
    check_user_file(path, options)
    files = [("edges", file) for file in list_files(path)]
    if ending(path) in TABLE_SUFFIXES:
        table = find_node_table(path, options)
        files += [("nodes", file) for file in list_files(table)] if table else []
        graphs = find_graph_table(path)
        files += [("graphs", graphs)] if graphs else []
    identity: dict[str, Any] = {"dataset": name_files(path), "format": ending(path), "content": digest_files(files)}
    given_options = {name: getattr(options, name) for name in ("directed", "task", "metric", "classes", *TABLE_OPTIONS)}
    given_options["header"] = None if options.header else "none"
    texts = {
        name: ",".join(value) if isinstance(value, tuple) else value for name, value in given_options.items() if value
    }
    return identity | {"seed": options.seed} | texts


def check_user_file(path: Path, options: DatasetOptions) -> None:
    """Raise DatasetError for a file that is not there or cannot be read, and for options that it does not take."""
    files = list_files(path)
    for file in files or [path]:
        if not file.exists():
            raise DatasetError(say_missing(file))
        if ending(file) not in SUFFIXES or not file.is_file():
            what = "a folder" if file.is_dir() else f"a '{file.suffix}' file" if file.is_file() else "no plain file"
            raise DatasetError(f"{file} is {what}; a dataset of your own is one of {', '.join(SUFFIXES)}")
    for name in ("nodes", "graphs"):
        if getattr(options, name) is not None:
            raise DatasetError(f"--{name} sets the size of a generated dataset; {path.name} has a size already")
    for name in ("node_table", *TABLE_OPTIONS):
        if getattr(options, name) and ending(path) not in TABLE_SUFFIXES:
            option = f"--{name.replace('_', '-')}"
            raise DatasetError(f"{option} goes with a table of edges ({', '.join(TABLE_SUFFIXES)}), not {path.name}")
