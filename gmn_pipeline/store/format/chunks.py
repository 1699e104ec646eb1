"""How a large raw array is cut into chunks that still lie one behind the other in one file.

Zarr calls this sharding: a file with all chunks, and an index at its end that says where each begins. So the file
begins with the array's memory and can be mapped as one, and a Zarr reader that wants some rows reads some chunks.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gmn_pipeline.store.format.array_spec import ArraySpec

LARGE_BYTES = 1 << 28
"""Smaller arrays are one chunk."""
CHUNK_BYTES = 1 << 26


@dataclass(frozen=True)
class Chunks:
    """`count` chunks of `rows` rows each; the last one is filled up with zeros."""

    spec: ArraySpec
    rows: int
    count: int

    @property
    def inner(self) -> tuple[int, ...]:
        """The shape of a chunk."""
        return (self.rows, *self.spec.shape[1:])

    @property
    def outer(self) -> tuple[int, ...]:
        """The shape of all of them together."""
        return (self.count * self.rows, *self.spec.shape[1:])

    @property
    def chunk_bytes(self) -> int:
        return math.prod(self.inner) * self.spec.dtype.itemsize

    @property
    def file_bytes(self) -> int:
        return self.count * self.chunk_bytes + len(self.index())

    def index(self) -> bytes:
        """The end of the file: offset and size of each chunk, and a checksum of these."""
        import google_crc32c

        entries = np.empty((self.count, 2), "<u8")
        entries[:, 0] = np.arange(self.count, dtype=np.uint64) * np.uint64(self.chunk_bytes)
        entries[:, 1] = self.chunk_bytes
        return entries.tobytes() + int(google_crc32c.value(entries.tobytes())).to_bytes(4, "little")

    def codecs(self) -> list[dict[str, Any]]:
        """What the array's zarr.json says of its codecs."""
        plain = {"name": "bytes", "configuration": {"endian": "little"}}
        if self.spec.dtype.itemsize == 1:
            plain = {"name": "bytes"}
        index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
        layout = {
            "chunk_shape": list(self.inner), "codecs": [plain], "index_codecs": index, "index_location": "end",
        }  # fmt: skip
        return [{"name": "sharding_indexed", "configuration": layout}]


def plan_chunks(spec: ArraySpec) -> Chunks | None:
    """The chunks of a raw array; None where it is a single one."""
    row_bytes = math.prod(spec.shape[1:]) * spec.dtype.itemsize
    if row_bytes * spec.shape[0] < LARGE_BYTES:
        return None
    rows = max(1, CHUNK_BYTES // row_bytes)
    return Chunks(spec, rows, -(-spec.shape[0] // rows))
