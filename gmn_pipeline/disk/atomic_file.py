"""Files that are replaced in one step: a reader, or a kill at any moment, never finds half of one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gmn_pipeline.errors import WriteError


@contextmanager
def write_aside(file: Path) -> Iterator[Path]:
    """A place to write `file` at. It is flushed to disk and renamed when the block ends, and removed if that fails."""
    aside = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        yield aside
        sync(aside)
        aside.replace(file)
        sync(file.parent)
    finally:
        aside.unlink(missing_ok=True)


def write_bytes(file: Path, content: bytes) -> None:
    """Replace `file`, whose folder is there."""
    with write_aside(file) as aside:
        aside.write_bytes(content)


@contextmanager
def write_output(file: Path) -> Iterator[Path]:
    """The same for a file that the user asked for: its folder is made, and WriteError says why it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with write_aside(file) as aside:
            yield aside
    except OSError as error:
        raise WriteError(f"cannot write {file}: {error.strerror or error}; choose another place") from None


def write_text(file: Path, text: str) -> Path:
    """Write a text file that the user asked for. Raises WriteError."""
    with write_output(file) as aside:
        aside.write_text(text, encoding="utf-8")
    return file


def sync(path: Path) -> None:
    """Flush a file, or a folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
