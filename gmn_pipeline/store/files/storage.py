"""Where the files of a store are read from. A second kind of place is one class with these methods."""

import contextlib
import fcntl
import mmap
import os
import stat
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from gmn_pipeline.errors import StoreCorruptError, StoreError

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # not to wait for the writer of a named pipe


class Storage(Protocol):
    """Files by name, such as `tokens/index/zarr.json`. `str()` of it is how messages call the place.

    Names that are missing or hold something else than a plain file raise StoreCorruptError.
    """

    room: int | None
    """Bytes that may be mapped at a time; None where the files lie on this machine."""

    def read(self, name: str, most: int) -> bytes:
        """The whole file, which must not have more than `most` bytes."""
        ...

    def map(self, name: str, size: int) -> mmap.mmap:
        """The file's bytes, read from disk when they are touched. It must have exactly `size` of them."""
        ...

    def list(self, folder: str) -> list[str]:
        """The names in a folder, sorted; a folder's end with `/`."""
        ...

    def exists(self, name: str) -> bool: ...

    def folder(self, group: str) -> Path:
        """A folder of this machine that holds a group's files."""
        ...

    def expect(self, groups: Iterable[str]) -> None:
        """Groups that will be read soon: a far place begins to fetch them."""
        ...


class LocalFolder:
    """A folder of this machine, held open: the files stay those of the same store when another takes its name.

    The hold is a shared lock on the folder, which keeps a writer from deleting a replaced store that is still read.
    """

    room: int | None = None

    def __init__(self, path: Path, called: str | None = None) -> None:
        """called: the place in messages, if not the path."""
        self.path, self._called = path, called or str(path)
        try:
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(f"{path} cannot be opened: {error.strerror}") from None
        with contextlib.suppress(OSError):  # not every network file system locks folders
            fcntl.flock(self._root, fcntl.LOCK_SH | fcntl.LOCK_NB)
        weakref.finalize(self, os.close, self._root)

    def __str__(self) -> str:
        return self._called

    def read(self, name: str, most: int) -> bytes:
        descriptor, size = self._open(name)
        try:
            if size > most:
                raise StoreCorruptError(f"{self}/{name} has {size:,} bytes, expected at most {most:,}; it was changed")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(most)
        except OSError as error:
            raise self._fault(name, error) from None
        finally:
            os.close(descriptor)

    def map(self, name: str, size: int) -> mmap.mmap:
        descriptor, length = self._open(name)
        try:
            if length != size:
                raise StoreCorruptError(
                    f"{self}/{name} has {length:,} bytes, expected {size:,}; it was cut off or changed"
                )
            return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        except OSError as error:
            raise StoreError(f"{self}/{name} cannot be mapped: {error.strerror}") from None
        finally:
            os.close(descriptor)

    def list(self, folder: str) -> list[str]:
        try:
            descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._root)
        except OSError as error:
            raise self._fault(folder, error) from None
        try:
            with os.scandir(descriptor) as entries:
                return sorted(e.name + "/" * e.is_dir() for e in entries)
        finally:
            os.close(descriptor)

    def exists(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self._root)
        except OSError:
            return False
        return True

    def folder(self, group: str) -> Path:
        return self.path / group

    def expect(self, groups: Iterable[str]) -> None:
        pass

    def _open(self, name: str) -> tuple[int, int]:
        """The descriptor and size of a plain file."""
        try:
            descriptor = os.open(name, _FLAGS, dir_fd=self._root)
        except OSError as error:
            raise self._fault(name, error) from None
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            os.close(descriptor)
            raise StoreCorruptError(f"{self}/{name} is not a plain file; restore the store or tokenize again")
        return descriptor, facts.st_size

    def _fault(self, name: str, error: OSError) -> StoreError:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            return StoreError(f"{self}/{name} cannot be read: {error.strerror}")
        if self._was_replaced():
            return StoreError(
                f"{self} was replaced or removed while it was read; start again to read what is there now"
            )
        return StoreCorruptError(f"{self}/{name} is missing; run gmn-prep repair on the store")

    def _was_replaced(self) -> bool:
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(self._root))
        except OSError:
            return True
