"""Writes groups of arrays as Zarr v3 folders, each whole or not at all.

zarr-python writes them, so any Zarr reader reads them.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gmn_pipeline.disk.atomic_file import remove, write_aside
from gmn_pipeline.errors import StoreError
from gmn_pipeline.store.array_files import array_checksum
from gmn_pipeline.store.digests import CHECKSUMS
from gmn_pipeline.store.dimensions import dimension_names
from gmn_pipeline.store.schema import ArraySpec
from gmn_pipeline.store.storage import LocalFolder
from gmn_pipeline.store.token_settings import Codec
from gmn_pipeline.types import Array

ZSTD_LEVEL = 3
WIP = ".wip"


def write_arrays(
    root: Path,
    group: str,
    arrays: Mapping[str, Array],
    attributes: Mapping[str, Any],
    codec: Codec,
    *,
    replace: bool = False,
) -> None:
    """Write `root/group` with its arrays and their checksums; one that is already there stays, unless `replace`.

    Any number of processes may do so at once. Raises StoreError when the disk is full or cannot be written.
    """
    import zarr

    with _workplace(root, group) as wip, write_aside(root / group, folder=wip, keep=not replace) as aside:
        folder = zarr.create_group(str(aside), zarr_format=3)
        for name, array in arrays.items():
            _write_array(folder, name, array, codec, dimension_names(group, name, array.ndim))
        written, specs = LocalFolder(aside), {name: ArraySpec(a.dtype, a.shape) for name, a in arrays.items()}
        sums = {name: array_checksum(written, name, spec, codec) for name, spec in specs.items()}
        folder.update_attributes({**attributes, CHECKSUMS: sums})


def write_document(root: Path, group: str, attributes: Mapping[str, Any]) -> None:
    """Write or replace only the zarr.json of a group, in one step."""
    import zarr

    target = root / group
    with _workplace(root, group) as wip:
        target.mkdir(parents=True, exist_ok=True)
        with write_aside(target / "zarr.json", folder=wip) as aside:
            whole = aside.with_name(f"{aside.name}.group")
            try:
                zarr.create_group(str(whole), zarr_format=3, attributes=dict(attributes))
                (whole / "zarr.json").rename(aside)
            finally:
                remove(whole)


@contextmanager
def _workplace(root: Path, group: str) -> Iterator[Path]:
    """The folder `.wip`, with a shared lock. The last writer to leave removes it, with all that killed ones left."""
    wip = root / WIP
    try:
        descriptor = _hold(wip)
        try:
            yield wip
        finally:
            _leave(wip, descriptor)
    except OSError as error:
        raise StoreError(
            f"cannot write {group} of {root}: {error.strerror or error}; make room or choose another --out, then run "
            "the same command again: it continues where it stopped"
        ) from error


def _leave(folder: Path, descriptor: int) -> None:
    """Remove the folder unless others are at work there. Without locks, only if it is empty."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(folder)
    except BlockingIOError:
        pass
    except OSError:
        with suppress(OSError):
            folder.rmdir()
    finally:
        os.close(descriptor)


def _hold(folder: Path) -> int:
    """Make a folder and take a shared lock on it; again, if it was removed in between."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if os.path.samestat(folder.stat(), os.fstat(descriptor)):
                return descriptor
        os.close(descriptor)


def _write_array(folder: Any, name: str, array: Array, codec: Codec, dimensions: tuple[str, ...]) -> None:
    from zarr.codecs import ZstdCodec

    made = folder.create_array(
        name,
        shape=array.shape,
        dtype=array.dtype,
        chunks=tuple(max(1, extent) for extent in array.shape),
        compressors=None if codec == "raw" else ZstdCodec(level=ZSTD_LEVEL, checksum=True),
        fill_value=0,
        dimension_names=dimensions,
        config={"write_empty_chunks": True},  # otherwise a chunk of zeros has no file
    )
    if array.size:
        made[...] = array
