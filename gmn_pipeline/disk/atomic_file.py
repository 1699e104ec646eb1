"""Files and folders that appear whole or not at all: written aside, flushed to disk, renamed into place."""

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from gmn_pipeline.disk.writable import check_output
from gmn_pipeline.errors import WriteError

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)


@contextmanager
def write_aside(path: Path, *, folder: Path | None = None, keep: bool = False) -> Iterator[Path]:
    """Yield a free name; the file or folder written there takes the place of `path` when the block ends.

    The name is unique, so that many processes may write the same `path` at once. After an error nothing is left, and
    `path` is as it was. Raises OSError.

    Args:
        folder: where the free name lies, on the same disk; beside `path` if not given.
        keep: a folder that is already at `path` stays, and the new one is dropped.
    """
    aside = (folder or path.parent) / f"{path.name}.{uuid4().hex}.part"
    aside.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield aside
        _sync_tree(aside)
        _put(aside, path, keep)
        sync(path.parent)
    finally:
        remove(aside)


def write_bytes(path: Path, content: bytes) -> None:
    """Write or replace a file in one step. Raises OSError."""
    with write_aside(path) as aside:
        aside.write_bytes(content)


@contextmanager
def write_output(path: Path) -> Iterator[Path]:
    """The same for a file that the user asked for: its folder is made, and WriteError says why it cannot be written."""
    check_output(path)
    try:
        with write_aside(path) as aside:
            yield aside
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}; choose another place") from None


def write_text(path: Path, text: str) -> Path:
    """Write a text file that the user asked for. Raises WriteError."""
    with write_output(path) as aside:
        aside.write_text(text, encoding="utf-8")
    return path


def exchange(one: Path, other: Path) -> None:
    """Swap what two names stand for: in one step on Linux, else in three renames."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is not None and rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return
    spare = one.with_name(f"{one.name}.{uuid4().hex}.part")
    one.rename(spare)
    other.rename(one)
    spare.rename(other)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file, or the list of names of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_tree(path: Path) -> None:
    if path.is_dir():
        for child in path.iterdir():
            _sync_tree(child)
    sync(path)


def _put(aside: Path, path: Path, keep: bool) -> None:
    try:
        aside.replace(path)
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        if not keep:
            exchange(aside, path)
