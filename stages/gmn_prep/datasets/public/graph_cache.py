"""A converted graph kept as plain .npy files, mapped back without torch.

Importing torch, PyG and ogb takes five seconds; mapping a graph takes none. A cache is a folder:

    graph.json                what it was made from (digest of the raw files), task, categories, directed
    indptr.npy indices.npy x.npy y.npy splits.npy ...

It is written aside and renamed when whole, and is left unread unless format and digest fit.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import GmnError
from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task

FORMAT = 1


def cache_name(directed: bool) -> str:
    return f"gmn-graph-v{FORMAT}{'-directed' if directed else ''}"


def read_cache(folder: Path, digest: str) -> Graph | None:
    """The graph kept in `folder`, mapped from disk; None if there is none, or of other raw files."""
    try:
        about = json.loads((folder / "graph.json").read_text())
        if about.get("format") != FORMAT or about.get("digest") != digest:
            return None
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in about["arrays"]}
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        if shapes != about["arrays"]:
            return None
        return Graph(task=Task(**about["task"]), **_lists_to_tuples(about["fields"]), **arrays)
    except (OSError, ValueError, KeyError, TypeError, EOFError, GmnError):
        return None  # broken or foreign: as good as absent


def write_cache(folder: Path, digest: str, graph: Graph) -> bool:
    """Keep `graph` in `folder`, in place of what is there. False if the disk does not allow it."""
    assert graph.task is not None
    arrays = graph.arrays()
    about = {
        "format": FORMAT,
        "digest": digest,
        "task": graph.task.as_dict(),
        "fields": {
            "directed": graph.directed,
            "x_categories": graph.x_categories,
            "edge_categories": graph.edge_categories,
        },
        "arrays": {name: array.shape for name, array in arrays.items()},
    }
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        aside.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            np.save(aside / f"{name}.npy", array, allow_pickle=False)
        (aside / "graph.json").write_text(json.dumps(about, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        return False
    return True


def _lists_to_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
