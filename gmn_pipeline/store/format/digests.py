"""Digests: 128-bit XXH3 in hexadecimal. They guard against damage and mix-ups, not against forgery."""

import json
import mmap
from collections.abc import Mapping
from typing import Any

import xxhash

CHECKSUMS = "checksums"
"""The attribute of a group that holds its arrays' checksums."""
FACTS = "gmn"
"""The attribute that holds the root's manifest, or a group's own facts."""

_PIECE = 1 << 24


def digest_of(value: Any) -> str:
    """Digest of a JSON value, independent of key order and white space."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return xxhash.xxh3_128_hexdigest(text.encode())


def group_digest(attributes: Mapping[str, Any]) -> str:
    """Digest of a group's attributes: its arrays' checksums and its facts."""
    return digest_of({CHECKSUMS: attributes.get(CHECKSUMS), FACTS: attributes.get(FACTS)})


def checksum(document: bytes, chunk: bytes | mmap.mmap | None) -> str:
    """Digest of an array as stored: its zarr.json, then its chunk. Mapped pages are given back on the way."""
    digest = xxhash.xxh3_128(document)
    if chunk is not None:
        view = memoryview(chunk)
        for start in range(0, len(view), _PIECE):
            with view[start : start + _PIECE] as piece:
                digest.update(piece)
            if isinstance(chunk, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                chunk.madvise(mmap.MADV_DONTNEED, start, min(_PIECE, len(view) - start))
        view.release()
    return digest.hexdigest()
