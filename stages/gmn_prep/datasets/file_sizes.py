"""Whether a file may be unpacked: small files that claim to hold very much are refused before memory is asked for."""

import gzip
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError, one_line

HARMLESS = 1 << 28
"""Bytes that any file may unpack to."""
RATIO = 200
"""Beyond that, how many times its own size. Zip goes to 1,032 for zeros; features of few ones come to about 100."""
HARMLESS_TABLE, TABLE_RATIO = 1 << 24, 50
"""The same for a table of numbers, packed by gzip."""


def check_unpacked(path: Path, unpacked: int, *, ratio: int = RATIO, remedy: str) -> None:
    """Raise DatasetError where a file unpacks to suspiciously more than it is."""
    size = path.stat().st_size
    if unpacked > HARMLESS and unpacked > ratio * size:
        raise DatasetError(f"{path.name} unpacks to {unpacked:,} bytes from {size:,}; {remedy}")


def check_gzip(path: Path) -> None:
    """Raise DatasetError for a packed table of numbers that unpacks to much more than numbers do, about ten times."""
    most, unpacked = max(HARMLESS_TABLE, TABLE_RATIO * path.stat().st_size), 0
    try:
        with gzip.open(path) as file:
            while piece := file.read(1 << 20):
                unpacked += len(piece)
                if unpacked > most:
                    raise DatasetError(f"{path.name} unpacks to more than {most:,} bytes; replace it")
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path.name} cannot be unpacked ({error}); replace it") from error


def check_holes(path: Path) -> None:
    """Raise DatasetError for a sparse file: a terabyte of zeros that takes no room on the disk takes hours to read."""
    facts = path.stat()
    if facts.st_size > HARMLESS and facts.st_size > RATIO * 512 * facts.st_blocks:
        raise DatasetError(f"{path.name} has {facts.st_size:,} bytes, nearly all of them holes; write it again")


def check_npz(path: Path) -> None:
    """Raise DatasetError unless every array's header claims what its member of the .npz has.

    ValueError and BadZipFile where it is no such file.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        check_unpacked(path, total, remedy="write it with numpy.savez, not compressed, if that is meant")
        for member in members:
            with archive.open(member) as file:
                shape, dtype = _read_header(file)
            claimed = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
            if claimed > member.file_size:
                raise DatasetError(
                    f"{path.name}: {member.filename} claims {claimed:,} bytes and has fewer; write the file again"
                )


def check_torch(path: Path) -> None:
    """Raise DatasetError for a torch file that is packed tighter than torch does, which never compresses."""
    try:
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            total = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DatasetError(f"{path.name} is not a file saved by torch ({one_line(error)})") from error
    check_unpacked(path, total, ratio=2, remedy="save it anew with torch.save")


def _read_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except Exception as error:  # numpy parses the header as Python does a literal, and fails as variously
        raise ValueError(f"a header that is none: {error}") from error
    return shape, dtype
