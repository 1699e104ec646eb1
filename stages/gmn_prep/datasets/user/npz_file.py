"""The user's own graph in a .npz file. docs/datasets.md lists the keys."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, one_line
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.file_sizes import check_npz
from gmn_prep.datasets.user.user_graph import SCALARS


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
            f"{path.name} is not an .npz file of plain arrays ({one_line(error)}); "
            "write it with numpy.savez and no object arrays"
        ) from error
