"""Zarr v3 groups and arrays as they lie in a store, checked against what the format says before they are used.

zarr-python never maps files, so this reads them by itself: a raw array is a plain file of little-endian C-ordered
values, in one chunk or, if it is large, in several that lie behind each other.
"""

import contextlib
import json
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.files.storage import Storage
from gmn_pipeline.store.format.chunks import Chunks, plan_chunks
from gmn_pipeline.store.format.digests import CHECKSUMS, FACTS, checksum
from gmn_pipeline.store.format.schema import ArraySpec, BlockFacts
from gmn_pipeline.store.format.words import Codec
from gmn_pipeline.types import Array

MOST_DOCUMENT = 1 << 22
"""No zarr.json is larger: a manifest has a few kilobytes."""
ZSTD_RATIO = 1 << 15
"""Zstd never makes data smaller than this: a block of 128 KiB takes at least 4 bytes."""

REMEDY = "run gmn-prep repair on the store"


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

    @property
    def was_cut(self) -> bool:
        """Whether the file has lost bytes since it was mapped: to touch those would end the process."""
        return is_cut(self.mapping)


def is_cut(mapping: mmap.mmap | None) -> bool:
    """Whether the file beneath a mapping is shorter than it was."""
    return mapping is not None and mapping.size() < len(mapping)


def open_array(storage: Storage, array: str, spec: ArraySpec, codec: Codec, *, random: bool = False) -> OpenArray:
    """Open one array, checking type, shape, codec and file size against what the format says they must be.

    raw: maps the chunk, nothing is read or copied; `random` tells the system not to read ahead. zstd: decodes it.
    """
    _, chunk = array_bytes(storage, array, spec, codec)
    if chunk is None:
        return OpenArray(np.empty(spec.shape, spec.dtype), None)
    if isinstance(chunk, bytes):
        values = _decode(f"{storage}/{array}", chunk, _size(spec))
        return OpenArray(values.view(spec.dtype).reshape(spec.shape), None)
    if random and hasattr(mmap, "MADV_RANDOM"):
        chunk.madvise(mmap.MADV_RANDOM)
    return OpenArray(np.frombuffer(chunk, spec.dtype, math.prod(spec.shape)).reshape(spec.shape), chunk)


def array_bytes(storage: Storage, array: str, spec: ArraySpec, codec: Codec) -> tuple[bytes, bytes | mmap.mmap | None]:
    """An array's zarr.json and its file as stored: mapped if raw, read if zstd, None if the array is empty."""
    text = storage.read(f"{array}/zarr.json", MOST_DOCUMENT)
    chunks = _check_document(f"{storage}/{array}", _parse(text, f"{storage}/{array}", "array"), spec, codec)
    if 0 in spec.shape:
        return text, None
    name, size = f"{array}/c/{'/'.join('0' for _ in spec.shape)}", _size(spec)
    if codec == "raw":
        return text, storage.map(name, size if chunks is None else chunks.file_bytes)
    return text, storage.read(name, size + (size >> 8) + 1024)  # what zstd may add to data it cannot compress


def array_checksum(storage: Storage, array: str, spec: ArraySpec, codec: Codec) -> str:
    """The digest that an array's group keeps of it."""
    return checksum(*array_bytes(storage, array, spec, codec))


def read_attributes(storage: Storage, group: str) -> dict[str, Any]:
    """The attributes of a group; StoreCorruptError where there is no readable group."""
    attributes = read_group_document(storage, group).get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def read_group_document(storage: Storage, group: str) -> dict[str, Any]:
    """The zarr.json of a group; "" is the root."""
    return _parse(storage.read(document_name(group), MOST_DOCUMENT), f"{storage}/{group}".rstrip("/"), "group")


def document_name(group: str) -> str:
    """The name of a group's zarr.json; "" is the root."""
    return f"{group}/zarr.json".lstrip("/")


def read_checksums(storage: Storage, group: str, specs: Mapping[str, ArraySpec]) -> dict[str, str]:
    """The checksums a group keeps, one for each of its arrays."""
    sums = read_attributes(storage, group).get(CHECKSUMS)
    if not isinstance(sums, dict) or sums.keys() != specs.keys():
        raise StoreCorruptError(f"{storage}/{group}/zarr.json has no checksum of each array; {REMEDY}")
    return sums


def block_facts(attributes: Mapping[str, Any], where: str) -> BlockFacts:
    """The counts in a block's attributes; StoreCorruptError where they are unreadable."""
    try:
        facts = BlockFacts(**attributes[FACTS])
    except (KeyError, TypeError):
        facts = None
    if facts is None or not all(type(count) is int and count >= 0 for count in vars(facts).values()):
        raise StoreCorruptError(f"{where}/zarr.json: the block's counts are unreadable; {REMEDY}")
    return facts


def _size(spec: ArraySpec) -> int:
    return math.prod(spec.shape) * spec.dtype.itemsize


def _parse(text: bytes, where: str, kind: str) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise StoreCorruptError(f"{where}/zarr.json cannot be read ({error}); {REMEDY}") from None
    if not isinstance(document, dict) or document.get("node_type") != kind or document.get("zarr_format") != 3:
        raise StoreCorruptError(f"{where}/zarr.json does not describe a Zarr v3 {kind}; {REMEDY}")
    return document


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _check_document(where: str, document: Mapping[str, Any], spec: ArraySpec, codec: Codec) -> Chunks | None:
    """Compare an array's zarr.json with what it must say; returns its chunks if it has several."""
    chunks = plan_chunks(spec) if codec == "raw" and 0 not in spec.shape else None
    if chunks is not None and document.get("codecs") != chunks.codecs():
        chunks = None  # one chunk, from an earlier version
    names = ["bytes"] if codec == "raw" else ["bytes", "zstd"]
    shape = [max(1, n) for n in (spec.shape if chunks is None else chunks.outer)]
    for what, stored, wanted in (
        ("type", document.get("data_type"), spec.dtype.name),
        ("shape", document.get("shape"), list(spec.shape)),
        ("chunk shape", _inner(document.get("chunk_grid"), "chunk_shape"), shape),
        ("codecs", _codec_names(document.get("codecs")), names if chunks is None else ["sharding_indexed"]),
    ):
        if stored != wanted:
            raise StoreCorruptError(f"{where}: {what} is {stored}, expected {wanted}; {REMEDY}")
    return chunks


def _inner(value: Any, key: str) -> Any:
    """`value["configuration"][key]`, or None where there is no such thing."""
    configuration = value.get("configuration") if isinstance(value, dict) else None
    return configuration.get(key) if isinstance(configuration, dict) else None


def _codec_names(codecs: Any) -> list[str]:
    """The codecs' names; a byte order that is not ours counts as another codec."""
    entries = codecs if isinstance(codecs, list) else []
    big = [e for e in entries if _inner(e, "endian") not in (None, "little")]
    return ["big-endian"] if big else [str(e.get("name")) if isinstance(e, dict) else str(e) for e in entries]


def _decode(where: str, data: bytes, size: int) -> Array:
    """Decompress a chunk that must come to `size` bytes. No more than that is ever allocated."""
    from numcodecs import zstd

    says = _content_size(data)
    if says != size or size > len(data) * ZSTD_RATIO:
        raise StoreCorruptError(f"{where}: its chunk unpacks to {says} bytes, expected {size:,}; {REMEDY}")
    try:
        return np.frombuffer(zstd.decompress(data, np.empty(size, np.uint8)), np.uint8)
    except (RuntimeError, ValueError) as error:
        raise StoreCorruptError(f"{where}: its chunk cannot be decompressed ({error}); {REMEDY}") from None


def _content_size(data: bytes) -> int | None:
    """What the header of a zstd frame says its content has; None where there is no such header (RFC 8878, 3.1.1.1)."""
    if len(data) < 6 or data[:4] != b"\x28\xb5\x2f\xfd":
        return None
    single, flag = data[4] >> 5 & 1, data[4] >> 6
    width = (1 if single else 0, 2, 4, 8)[flag]
    start = 5 + (1 - single) + (0, 1, 2, 4)[data[4] & 3]
    if width == 0 or len(data) < start + width:
        return None
    return int.from_bytes(data[start : start + width], "little") + (256 if width == 2 else 0)
