"""Many short texts as two arrays, as Arrow and plain numpy read them: all bytes in a row, and where each begins."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gmn_pipeline.errors import GraphError
from gmn_pipeline.types import Array, IntArray


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """Text i is content[ptr[i] : ptr[i+1]], in UTF-8."""

    ptr: IntArray
    """(count+1,) int64."""
    content: Array
    """(bytes,) uint8."""

    @classmethod
    def of(cls, texts: Sequence[object]) -> "Texts":
        """From any values: numbers are written as Python does."""
        encoded = [str(text).encode() for text in texts]
        ptr = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in encoded], out=ptr[1:])
        return cls(ptr, np.frombuffer(b"".join(encoded), dtype=np.uint8))

    def __len__(self) -> int:
        return self.ptr.size - 1

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        row %= len(self)
        try:
            return self.content[self.ptr[row] : self.ptr[row + 1]].tobytes().decode()
        except UnicodeDecodeError:  # whole stores are checked by `verify` alone: it takes a pass over all bytes
            raise GraphError(f"the id of row {row} is not UTF-8 text; restore its file or make it anew") from None

    def take(self, rows: Array) -> list[str]:
        """The texts of some rows."""
        return [self[int(row)] for row in rows]

    def rows(self, texts: Sequence[str]) -> IntArray:
        """The row of each text, (len(texts),) int64; -1 where there is none, the last where there are several."""
        place = {text: row for row, text in enumerate(self)}
        return np.array([place.get(text, -1) for text in texts], dtype=np.int64)

    def check(self, name: str) -> None:
        """Raise GraphError unless every text is UTF-8 by itself."""
        inside = self.content[self.ptr[self.ptr < self.content.size]] & 0xC0 == 0x80
        try:
            if inside.any():
                raise ValueError("a text begins within a character")
            self.content.tobytes().decode()
        except ValueError as error:
            raise GraphError(f"{name} are not UTF-8 text ({error})") from None
