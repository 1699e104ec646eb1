"""A converted graph kept as plain .npy files, mapped back without torch.

Importing torch, PyG and ogb takes five seconds; mapping a graph takes none. A cache is a folder:

    graph.json                what it was made from (digest of the raw files), task, categories, directed, checksums
    indptr.npy indices.npy x.npy y.npy splits.npy ...

It is written aside and renamed when whole. Unless format, digest and every checksum fit it is as good as absent:
checking reads every byte, at some 5 GB/s.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from gmn_pipeline.disk.atomic_file import write_aside
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
        if about.pop("checksum") != _digest(json.dumps(about, sort_keys=True).encode()):
            return None
        if about.get("format") != FORMAT or about.get("digest") != digest:
            return None
        files = {name: folder / f"{name}.npy" for name in about["arrays"]}
        if any(_checksum(file) != about["arrays"][name] for name, file in files.items()):
            return None
        arrays = {name: np.load(file, mmap_mode="r") for name, file in files.items()}
        return Graph(task=Task.from_dict(about["task"]), **_lists_to_tuples(about["fields"]), **arrays)
    except (OSError, ValueError, KeyError, TypeError, EOFError, GmnError):
        return None  # broken or foreign: as good as absent


def write_cache(folder: Path, digest: str, graph: Graph) -> bool:
    """Keep `graph` in `folder`, in place of what is there. False if the disk does not allow it."""
    assert graph.task is not None
    arrays = graph.arrays()
    about: dict[str, Any] = {
        "format": FORMAT,
        "digest": digest,
        "task": graph.task.as_dict(),
        "fields": {
            "directed": graph.directed,
            "x_categories": graph.x_categories,
            "edge_categories": graph.edge_categories,
        },
    }
    try:
        with write_aside(folder) as aside:
            aside.mkdir()
            for name, array in arrays.items():
                np.save(aside / f"{name}.npy", array, allow_pickle=False)
            about["arrays"] = {name: _checksum(aside / f"{name}.npy") for name in arrays}
            about["checksum"] = _digest(json.dumps(about, sort_keys=True).encode())
            (aside / "graph.json").write_text(json.dumps(about, indent=1))
    except OSError:
        return False
    return True


def _checksum(file: Path) -> str:
    return _digest(np.memmap(file, np.uint8, "r").data)


def _digest(content: Any) -> str:
    return xxhash.xxh3_128_hexdigest(content)


def _lists_to_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
