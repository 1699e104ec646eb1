"""Where the files of a store are written to. A second kind of place is one class with these methods."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from gmn_pipeline.errors import StoreClashError, StoreError
from gmn_pipeline.store.files.group_writer import WIP, copy_group, write_arrays, write_file
from gmn_pipeline.store.format.words import Codec
from gmn_pipeline.types import Array


class Target(Protocol):
    """A group is there when its zarr.json is, and then all of it is."""

    def begin(self) -> None:
        """Make the place. StoreClashError where something else than a store is there."""

    def having(self, groups: Iterable[str]) -> set[str]:
        """Those of the groups that are there."""

    def create(self, name: str, content: bytes) -> None:
        """Write a file that nobody else writes with other content."""

    def replace(self, name: str, content: bytes) -> None:
        """Put new content into a file, in one step."""

    def write_arrays(
        self, group: str, arrays: Mapping[str, Array], attributes: Mapping[str, Any], codec: Codec, *, replace: bool
    ) -> None:
        """Write a group with its arrays and their checksums; one that is already there stays, unless `replace`."""

    def put_group(self, group: str, folder: Path) -> None:
        """Write a group that lies in a folder, byte by byte; one that is already there stays."""


class FolderTarget:
    """A folder of this machine, or one that many hosts share."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self) -> None:
        if self.path.exists() and not self._is_only_scaffold():
            raise StoreClashError(f"{self.path} exists and is not a token store; choose another --out or remove it")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot create {self.path}: {error.strerror}; choose another --out") from error

    def having(self, groups: Iterable[str]) -> set[str]:
        return {group for group in groups if (self.path / group / "zarr.json").exists()}

    def create(self, name: str, content: bytes) -> None:
        write_file(self.path, name, content)

    replace = create

    def write_arrays(
        self, group: str, arrays: Mapping[str, Array], attributes: Mapping[str, Any], codec: Codec, *, replace: bool
    ) -> None:
        write_arrays(self.path, group, arrays, attributes, codec, replace=replace)

    def put_group(self, group: str, folder: Path) -> None:
        copy_group(self.path, group, folder)

    def _is_only_scaffold(self) -> bool:
        """Whether the folder is empty but for what a writer killed in its first moment leaves."""
        return self.path.is_dir() and all(child.name == WIP for child in self.path.iterdir())
