"""Fetch the published files of a dataset: single files, or the wanted members of a zip or tar file."""

import shutil
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import urlsplit

SECONDS = 10.0


def download(url: str, wanted: dict[str, Path]) -> None:
    """Fetch `url` and write what is wanted of it.

    wanted: where each file goes, by the end of its name. The file at `url` is one of them, or an archive of them.
    Raises OSError where the network fails, and what zipfile and tarfile raise.
    """
    folder = next(iter(wanted.values())).parent
    folder.mkdir(parents=True, exist_ok=True)
    name = PurePosixPath(urlsplit(url).path).name
    path = folder / f".{name}"
    print(f"downloading {url}", file=sys.stderr)
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer, path.open("wb") as file:
            shutil.copyfileobj(answer, file)
        if name in wanted:
            path.rename(wanted[name])
        else:
            unpack(path, wanted)
    finally:
        path.unlink(missing_ok=True)


def unpack(path: Path, wanted: dict[str, Path]) -> None:
    """Write the members of a zip or tar file that are wanted; a member is known by the end of its name."""
    for member, content in _members(path):
        parts = PurePosixPath(member).parts
        ends = ("/".join(parts[i:]) for i in range(len(parts)))
        target = next((wanted[end] for end in ends if end in wanted), None)
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if not name.endswith("/"):
                    with archive.open(name) as content:
                        yield name, content
        return
    with tarfile.open(path) as tar:
        for member in tar:
            opened = tar.extractfile(member) if member.isfile() else None
            if opened is not None:
                with opened:
                    yield member.name, opened
