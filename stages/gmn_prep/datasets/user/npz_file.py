"""The user's own graph in a .npz file. docs/datasets.md lists the keys."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.file_sizes import check_npz
from gmn_prep.datasets.user.user_graph import KEYS, SCALARS


def read_npz(path: Path, _options: DatasetOptions) -> tuple[dict[str, Any], list[str]]:
    """Every array of the file by name, scalars as Python values; and notes, none. Never unpickles."""
    try:
        check_npz(path)
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name].item() if name in SCALARS else file[name] for name in file.files}, []
    except (
        OSError,
        EOFError,
        ValueError,
        AttributeError,
        MemoryError,
        RuntimeError,
        zipfile.BadZipFile,
    ) as error:
        # A pickled object array, a lone .npy under a wrong name, and no zip file at all end here.
        raise DatasetError(
            f"{path.name} is not an .npz file of plain arrays ({' '.join(str(error).split())}); "
            "write it with numpy.savez and no object arrays"
        ) from error


def count_npz(path: Path) -> tuple[int, int] | None:
    """(nodes, slots at most), from the headers alone."""
    shapes: dict[str, tuple[int, ...]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                name = member.removesuffix(".npy")
                if name in KEYS and name != member:
                    with archive.open(member) as file:
                        shapes[name] = _header_shape(file)
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
    nodes = shapes["x"][0] if shapes.get("x") else shapes["indptr"][0] - 1 if shapes.get("indptr") else None
    edges = next((max(shapes[key]) for key in ("edge_index", "edges", "indices") if shapes.get(key)), None)
    if nodes is None or edges is None:
        return None
    return nodes, edges if "indices" in shapes else 2 * edges


def _header_shape(file: Any) -> tuple[int, ...]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)[0]
