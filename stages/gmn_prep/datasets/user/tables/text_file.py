"""A text file of the user's, plain or packed by gzip, as bytes."""

import gzip
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets.file_sizes import check_unpacked
from gmn_prep.datasets.user.tables.table_path import ending


def open_text(path: Path) -> BinaryIO:
    """Open to read. What unpacks to far more than its size raises DatasetError when that much has been read."""
    return _Unpacked(path) if ending(path).endswith(".gz") else path.open("rb")  # type: ignore[return-value]


class _Unpacked(gzip.GzipFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._path = path

    def read(self, size: Any = -1) -> bytes:
        try:
            content = super().read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DatasetError(f"{self._path.name} cannot be unpacked ({error}); pack it anew with gzip") from error
        check_unpacked(self._path, self.tell(), remedy="unpack it first, if that is meant")
        return content
