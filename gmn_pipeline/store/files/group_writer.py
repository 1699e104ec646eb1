"""Writes groups of arrays as Zarr v3 folders, each whole or not at all.

zarr-python writes them, so any Zarr reader reads them.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.disk.atomic_file import remove, write_aside
from gmn_pipeline.errors import StoreError
from gmn_pipeline.store.files.array_files import array_checksum, document_name
from gmn_pipeline.store.files.storage import LocalFolder
from gmn_pipeline.store.format.chunks import plan_chunks
from gmn_pipeline.store.format.digests import CHECKSUMS
from gmn_pipeline.store.format.dimensions import dimension_names
from gmn_pipeline.store.format.schema import ArraySpec
from gmn_pipeline.store.format.words import Codec
from gmn_pipeline.types import Array

ZSTD_LEVEL = 3
WIP = ".wip"
AT_ONCE = 1 << 26
"""Bytes of a raw array that are written together."""


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
        named = _names_dimensions(root)
        for name, array in arrays.items():
            dimensions = dimension_names(group, name, array.ndim) if named else None
            _write_array(folder, name, array, codec, dimensions)
        written, specs = LocalFolder(aside), {name: ArraySpec(a.dtype, a.shape) for name, a in arrays.items()}
        sums = {name: array_checksum(written, name, spec, codec) for name, spec in specs.items()}
        folder.update_attributes({**attributes, CHECKSUMS: sums})


def group_document(attributes: Mapping[str, Any]) -> bytes:
    """The zarr.json of a group, as zarr-python writes it."""
    import zarr
    from zarr.storage import MemoryStore

    files: dict[str, Any] = {}
    zarr.create_group(MemoryStore(files), zarr_format=3, attributes=dict(attributes))
    return bytes(files["zarr.json"].to_bytes())


def write_document(root: Path, group: str, attributes: Mapping[str, Any]) -> None:
    """Write or replace only the zarr.json of a group, in one step."""
    write_file(root, document_name(group), group_document(attributes))


def write_file(root: Path, name: str, content: bytes) -> None:
    """Write or replace one file of a store, in one step."""
    with _workplace(root, name) as wip:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        with write_aside(root / name, folder=wip) as aside:
            aside.write_bytes(content)


def copy_group(root: Path, group: str, folder: Path) -> None:
    """Copy a group from a folder; one that is already there stays."""
    with _workplace(root, group) as wip:
        (root / group).parent.mkdir(parents=True, exist_ok=True)
        with write_aside(root / group, folder=wip, keep=True) as aside:
            shutil.copytree(folder, aside)


def clear_workplace(root: Path) -> None:
    """Remove the `.wip` that a writer left which was killed in its last moment; one in use stays."""
    if (root / WIP).is_dir():
        with suppress(OSError):
            _leave(root / WIP, os.open(root / WIP, os.O_RDONLY))


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


def _names_dimensions(root: Path) -> bool:
    """Whether arrays of this store name their dimensions: not where its first ones do not, from an earlier version."""
    file = root / "tokens" / "index" / "block_ptr" / "zarr.json"
    try:
        return not file.is_file() or '"dimension_names"' in file.read_text()
    except (OSError, UnicodeDecodeError):
        return True


def _write_array(folder: Any, name: str, array: Array, codec: Codec, dimensions: tuple[str, ...] | None) -> None:
    from zarr.codecs import ZstdCodec

    several = plan_chunks(ArraySpec(array.dtype, array.shape)) if codec == "raw" and array.size else None
    made = folder.create_array(
        name,
        shape=array.shape,
        dtype=array.dtype,
        chunks=tuple(max(1, extent) for extent in array.shape) if several is None else several.inner,
        shards=None if several is None else several.outer,
        compressors=None if codec == "raw" else ZstdCodec(level=ZSTD_LEVEL, checksum=True),
        fill_value=0,
        dimension_names=dimensions,
        config={"write_empty_chunks": True},  # otherwise a chunk of zeros has no file
    )
    if several is None and (codec != "raw" or array.nbytes <= AT_ONCE or not array.flags.c_contiguous):
        if array.size:
            made[...] = array
        return
    file_name = Path(str(made.store.root), made.path, "c", *("0" for _ in array.shape))
    file_name.parent.mkdir(parents=True)
    with file_name.open("wb") as file:  # zarr would hold two copies of the whole array
        for start in range(0, len(array), rows := max(1, AT_ONCE * len(array) // array.nbytes)):
            piece = np.ascontiguousarray(array[start : start + rows], array.dtype.newbyteorder("<"))
            file.write(piece.reshape(-1).view("uint8").data)
        if several is not None:
            file.truncate(several.count * several.chunk_bytes)
            file.seek(0, os.SEEK_END)
            file.write(several.index())
