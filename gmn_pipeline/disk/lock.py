"""One process at a time: a lock beside what is written. The kernel holds it, so it ends with the process."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from filelock import FileLock, Timeout


def take_lock(path: Path, wait: float = 0, on_wait: Callable[[], None] | None = None) -> FileLock:
    """Become the only writer of `path`.

    Args:
        wait: seconds to wait for another process that has it; `on_wait` is called before.

    Raises:
        filelock.Timeout: another process has it.
        OSError: no lock can be made there.
    """
    file = _lock_file(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=file.parent):  # a lock that can never be made looks like one that is taken
        pass
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if wait == 0:
            raise
        if on_wait is not None:
            on_wait()
        lock.acquire(timeout=wait, poll_interval=0.2)
    return lock


def _lock_file(path: Path) -> Path:
    """Beside `path`, which may be `.`, a name that says nothing of its own."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - links stay as they are
    return whole.with_name(whole.name + ".lock")


def release_lock(lock: FileLock) -> None:
    """Give the lock back and remove its file (filelock notices when the file it waits for was removed)."""
    if lock.is_locked:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def remove_stale_lock(path: Path) -> None:
    """Remove the lock of a process that was killed in its last moment; one that is held, or cannot be, stays."""
    if _lock_file(path).exists():
        with suppress(Timeout, OSError):
            release_lock(take_lock(path))


def is_locked(path: Path) -> bool:
    """Whether another process writes `path` now. Changes nothing."""
    import fcntl

    try:
        with _lock_file(path).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
    except OSError:
        return False
    return False
