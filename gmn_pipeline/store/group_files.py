"""Groups of arrays as Zarr v3 folders: written whole or not at all, and read back by mapping.

zarr-python writes the folders, so any Zarr reader can read them. It never maps files, so `open_array` does that by
itself: a raw array is one uncompressed chunk, a plain file of little-endian C-ordered values.
"""

import contextlib
import json
import mmap
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from gmn_pipeline.errors import StoreCorruptError, StoreError
from gmn_pipeline.store.manifest import ATTRIBUTE
from gmn_pipeline.store.schema import ArraySpec, BlockFacts
from gmn_pipeline.store.token_settings import Codec
from gmn_pipeline.types import Array

ZSTD_LEVEL = 3
CHECKSUMS = "checksums"


@dataclass(frozen=True)
class GroupWriter:
    """Writes groups below one root, each aside in `.wip` and renamed into place when it is whole and on disk."""

    root: Path
    codec: Codec

    @property
    def aside(self) -> Path:
        return self.root / ".wip"

    def write(self, group: str, arrays: Mapping[str, Array], attributes: Mapping[str, Any]) -> None:
        """Write `root/group`. Raises StoreError when the disk is full or the folder cannot be written."""
        import zarr

        wip = self.aside / group.replace("/", ".")
        try:
            shutil.rmtree(wip, ignore_errors=True)
            folder = zarr.create_group(str(wip), zarr_format=3)
            for name, array in arrays.items():
                _write_array(folder, name, array, self.codec)
            sums = {name: checksum(wip / name) for name in arrays}
            folder.update_attributes({**attributes, CHECKSUMS: sums})
            self._put(wip, self.root / group)
        except OSError as error:
            shutil.rmtree(wip, ignore_errors=True)
            raise StoreError(
                f"cannot write {group} of {self.root}: {error.strerror or error}; make room or choose another --out, "
                "then run the same command again: it goes on where it stopped"
            ) from error

    def write_document(self, group: str, attributes: Mapping[str, Any]) -> None:
        """Write or replace only the zarr.json of a group, in one step."""
        import zarr

        wip = self.aside / "document"
        try:
            shutil.rmtree(wip, ignore_errors=True)
            zarr.create_group(str(wip), zarr_format=3, attributes=dict(attributes))
            target = self.root / group
            target.mkdir(parents=True, exist_ok=True)
            sync_file(wip / "zarr.json")
            (wip / "zarr.json").replace(target / "zarr.json")
            sync_folder(target)
        except OSError as error:
            raise StoreError(f"cannot write {self.root}: {error.strerror or error}; make room and run again") from error
        finally:
            shutil.rmtree(wip, ignore_errors=True)

    def _put(self, wip: Path, target: Path) -> None:
        for parent, _, files in os.walk(wip):
            for file in files:
                sync_file(Path(parent) / file)
            sync_folder(Path(parent))
        wip.rename(target)
        sync_folder(target.parent)


def _write_array(folder: Any, name: str, array: Array, codec: Codec) -> None:
    from zarr.codecs import ZstdCodec

    made = folder.create_array(
        name,
        shape=array.shape,
        dtype=array.dtype,
        chunks=tuple(max(1, extent) for extent in array.shape),
        compressors=None if codec == "raw" else ZstdCodec(level=ZSTD_LEVEL, checksum=True),
        fill_value=0,
        config={"write_empty_chunks": True},  # otherwise a chunk of zeros has no file
    )
    if array.size:
        made[...] = array


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


sync_folder = sync_file  # on POSIX a folder is synced the same way


def checksum(folder: Path) -> str:
    """Digest of an array's folder: its zarr.json, then its chunk where it has one."""
    digest = xxhash.xxh3_128()
    digest.update((folder / "zarr.json").read_bytes())
    chunk = _chunk_file(folder)
    if chunk is not None:
        with chunk.open("rb") as file:
            while piece := file.read(1 << 24):
                digest.update(piece)
    return digest.hexdigest()


def _chunk_file(folder: Path) -> Path | None:
    for chunk in (folder / "c" / "0", folder / "c" / "0" / "0"):
        if chunk.is_file():
            return chunk
    return None


def read_attributes(folder: Path) -> dict[str, Any]:
    """The attributes of a group; StoreCorruptError where there is no readable group."""
    attributes = _document(folder, "group").get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def read_block_facts(folder: Path) -> BlockFacts:
    """The counts a block carries; StoreCorruptError where they are unreadable."""
    try:
        facts = BlockFacts(**read_attributes(folder)[ATTRIBUTE])
    except (KeyError, TypeError):
        facts = None
    if facts is None or not all(isinstance(count, int) and count >= 0 for count in vars(facts).values()):
        raise StoreCorruptError(f"{folder}/zarr.json: the block's counts are unreadable; restore or rebuild it")
    return facts


def _document(folder: Path, kind: str) -> dict[str, Any]:
    path = folder / "zarr.json"
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise StoreCorruptError(f"{path} is missing; restore the store or tokenize again") from None
    except (OSError, ValueError) as error:
        raise StoreCorruptError(f"{path} cannot be read ({error}); restore the store or tokenize again") from None
    if not isinstance(document, dict) or document.get("node_type") != kind or document.get("zarr_format") != 3:
        raise StoreCorruptError(f"{path} does not describe a Zarr v3 {kind}; restore the store or tokenize again")
    return document


@dataclass(frozen=True)
class OpenArray:
    """An array read from a store, and the mapping beneath it (None where it is empty or was decoded)."""

    values: Array
    mapping: mmap.mmap | None

    def release(self) -> None:
        """Give the pages back to the system; they are read again from the file when next touched."""
        if self.mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            with contextlib.suppress(ValueError):  # already closed
                self.mapping.madvise(mmap.MADV_DONTNEED)


def open_array(folder: Path, spec: ArraySpec, codec: Codec, *, random: bool = False) -> OpenArray:
    """Open one array, checking type, shape, codec and file size against what the format says they must be.

    raw: maps the chunk, nothing is read or copied; `random` tells the system not to read ahead. zstd: decodes it.
    """
    document = _document(folder, "array")
    _check_document(folder, document, spec, codec)
    if 0 in spec.shape:
        return OpenArray(np.empty(spec.shape, spec.dtype), None)
    chunk = folder.joinpath("c", *("0" for _ in spec.shape))
    size = int(np.prod(spec.shape)) * spec.dtype.itemsize
    try:
        with chunk.open("rb") as file:
            if codec == "zstd":
                return OpenArray(_decode(chunk, file.read(), size).view(spec.dtype).reshape(spec.shape), None)
            found = os.fstat(file.fileno()).st_size
            if found != size:
                raise StoreCorruptError(f"{chunk} has {found:,} bytes, expected {size:,}; it was cut off or changed")
            mapping = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise StoreCorruptError(f"{chunk} is missing; restore the store or tokenize again") from None
    if random and hasattr(mmap, "MADV_RANDOM"):
        mapping.madvise(mmap.MADV_RANDOM)
    return OpenArray(np.frombuffer(mapping, spec.dtype).reshape(spec.shape), mapping)


def _check_document(folder: Path, document: Mapping[str, Any], spec: ArraySpec, codec: Codec) -> None:
    codecs = [entry.get("name") for entry in document.get("codecs", []) if isinstance(entry, dict)]
    endian = [e.get("configuration", {}).get("endian") for e in document.get("codecs", []) if e.get("name") == "bytes"]
    chunks = document.get("chunk_grid", {}).get("configuration", {}).get("chunk_shape")
    if endian and endian[0] not in (None, "little"):
        codecs = [f"{endian[0]}-endian"]
    for what, found, wanted in (
        ("type", document.get("data_type"), spec.dtype.name),
        ("shape", document.get("shape"), list(spec.shape)),
        ("chunk shape", chunks, [max(1, extent) for extent in spec.shape]),
        ("codecs", codecs, ["bytes"] if codec == "raw" else ["bytes", "zstd"]),
    ):
        if found != wanted:
            raise StoreCorruptError(f"{folder}: {what} is {found}, expected {wanted}; restore it or tokenize again")


def _decode(chunk: Path, data: bytes, size: int) -> Array:
    from numcodecs import zstd

    try:
        decoded = zstd.decompress(data)
    except RuntimeError as error:
        raise StoreCorruptError(f"{chunk} cannot be decompressed ({error}); it was cut off or changed") from None
    if len(decoded) != size:
        raise StoreCorruptError(f"{chunk} holds {len(decoded):,} bytes, expected {size:,}; it was cut off or changed")
    return np.frombuffer(decoded, np.uint8)
