"""Arrays that parts share, in a folder beside the store: written once, mapped by every process, removed at the end.

    NAME.zarr.parts/FINGERPRINT/pairs/other.npy
    NAME.zarr.parts/FINGERPRINT/random_walk/rows/00003/values.npy

Beside them lies FINGERPRINT/versions.json: `gmn_prep.parts.versions`.

Each folder of arrays is written aside and renamed when whole, so that any process may write it, again and again.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import numpy as np

from gmn_pipeline.disk.atomic_file import remove, write_aside
from gmn_pipeline.errors import StoreError
from gmn_pipeline.place import StorePlace, StoreUrl
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.types import Array


def parts_folder(store: Path, manifest: Manifest) -> Path:
    """Where the parts of a store of this content lie."""
    return _beside(store) / manifest.fingerprint


def write_shared(folder: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays for others to map, unless they are there. Raises StoreError."""
    if folder.is_dir():
        return
    try:
        with write_aside(folder, keep=True) as aside:
            aside.mkdir()
            for name, array in arrays.items():
                np.save(aside / f"{name}.npy", array, allow_pickle=False)
    except OSError as error:
        raise StoreError(f"cannot write {folder}: {error.strerror or error}; make room and run again") from error


def map_shared(folder: Path) -> dict[str, Array] | None:
    """The arrays of a folder, mapped; None where it was not written."""
    try:
        files = sorted(folder.glob("*.npy"))
        arrays = {file.stem: np.asarray(np.load(file, mmap_mode="r", allow_pickle=False)) for file in files}
    except FileNotFoundError:  # removed meanwhile: another process has completed the store
        return None
    return arrays if folder.is_dir() else None


def remove_parts(store: StorePlace) -> None:
    """Remove all that parts left beside a store that is complete now; beside an object store they leave nothing."""
    if isinstance(store, StoreUrl):
        return
    folder = _beside(store)
    aside = folder.with_name(f"{folder.name}.{uuid4().hex}")
    with suppress(FileNotFoundError):
        folder.rename(aside)  # in one step: others find all of it or nothing
        remove(aside)


def _beside(store: Path) -> Path:
    return store.with_name(f"{store.name}.parts")
