"""Writes groups of a store into an object store, which has no rename: a group's zarr.json is its marker, created last.

Every object is created if absent, so none has two writers. A second writer of a group finds its own bytes there; an
upload that was cut off is repeated, because a block's bytes depend on graph and settings only.
"""

import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gmn_pipeline.errors import StoreClashError, StoreError
from gmn_pipeline.store.files.group_writer import write_arrays
from gmn_pipeline.store.format.words import Codec
from gmn_pipeline.store.objects.client import Content, Objects
from gmn_pipeline.types import Array

MARKER = "zarr.json"


class ObjectTarget:
    """The objects below a URL."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def begin(self) -> None:
        names = self._objects.list("")
        if names and MARKER not in names:  # with it, another writer has begun just now
            raise StoreClashError(
                f"{self._objects} holds {names[0]} and is not a token store; choose another --out or remove it"
            )

    def having(self, groups: Iterable[str]) -> set[str]:
        groups = list(groups)
        there = self._objects.each(lambda group: self._objects.exists(f"{group}/{MARKER}"), groups)
        return {group for group, is_there in zip(groups, there, strict=True) if is_there}

    def create(self, name: str, content: bytes) -> None:
        self._objects.create(name, content)

    def replace(self, name: str, content: bytes) -> None:
        self._objects.replace(name, content)

    def write_arrays(
        self, group: str, arrays: Mapping[str, Array], attributes: Mapping[str, Any], codec: Codec, *, replace: bool
    ) -> None:
        if replace:
            raise StoreError(
                f"{self._objects}: a group of an object store is never replaced; tokenize to another --out"
            )
        with TemporaryDirectory(prefix="gmn-") as scratch:  # the bytes of a local store
            (Path(scratch) / group).parent.mkdir(exist_ok=True)
            write_arrays(Path(scratch), group, arrays, attributes, codec)
            self.put_group(group, Path(scratch) / group)

    def put_group(self, group: str, folder: Path) -> None:
        files = sorted(file for file in folder.rglob("*") if file.is_file() and file != folder / MARKER)
        self._objects.each(lambda file: self._send(f"{group}/{file.relative_to(folder).as_posix()}", file), files)
        self._send(f"{group}/{MARKER}", folder / MARKER)

    def _send(self, name: str, file: Path) -> None:
        with file.open("rb") as opened:
            content: Content = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        self._objects.create(name, content)
