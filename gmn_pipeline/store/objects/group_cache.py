"""Groups of far stores as local folders, named by digest. The least recently used are removed when they grow too large.

Any number of processes share the folder without a lock: a group appears whole or not at all, and to remove one is safe
while it is mapped. Its disk space is free once the last process lets go.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from uuid import uuid4

from gmn_pipeline.disk.atomic_file import remove, write_aside
from gmn_pipeline.errors import ConfigError, StoreError

DEFAULT_GB = 20.0
STALE_SECONDS = 86_400
"""After this long, what was being written belongs to a process that was killed."""
PART = ".part"


class GroupCache:
    """Folders `DIGEST-BYTES` of at most `limit` bytes together, but for what this process has mapped."""

    def __init__(self, root: Path, limit: int) -> None:
        self.root, self.limit = root, limit
        self._known: dict[str, Path] = {}
        self._coming = 0
        """Bytes that threads of this process are writing."""
        self._guard = Lock()
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._known = {path.name.split("-")[0]: path for path, _, _ in self._entries()}
        except OSError as error:
            raise self._fault(error) from None

    @classmethod
    def of_user(cls) -> "GroupCache":
        """The cache that all commands on this machine share: $GMN_CACHE_DIR, of $GMN_CACHE_GB gigabytes."""
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        root = Path(os.environ.get("GMN_CACHE_DIR") or home / "gmn-pipeline")
        text = os.environ.get("GMN_CACHE_GB") or DEFAULT_GB
        try:
            limit = float(text)
        except ValueError:
            limit = 0.0
        if not 0 < limit < 1e9:
            raise ConfigError(f"GMN_CACHE_GB is '{text}'; give gigabytes, such as {DEFAULT_GB:g}")
        return cls(root, int(limit * 1e9))

    def __contains__(self, digest: str) -> bool:
        return digest in self._known

    def find(self, digest: str) -> Path | None:
        """The folder of a group, now the most recently used; None where it is not there."""
        path = self._known.get(digest)
        if path is None:
            return None
        try:
            os.utime(path)
        except FileNotFoundError:
            self._known.pop(digest, None)
            return None
        return path

    def add(self, digest: str, size: int, fill: Callable[[Path], None], in_use: set[Path]) -> Path:
        """Have `fill` write a group of `size` bytes into a folder, and keep it. in_use: what not to remove for it."""
        path = self.root / f"{digest}-{size}"
        try:
            if not path.is_dir():  # or else another process was faster
                self._make_room(size, in_use)
                try:
                    with write_aside(path, keep=True) as aside:
                        aside.mkdir()
                        fill(aside)
                finally:
                    with self._guard:
                        self._coming -= size
            self._known[digest] = path
            return path
        except OSError as error:
            raise self._fault(error) from None

    def drop(self, digest: str) -> None:
        """Remove a group that turned out damaged."""
        path = self._known.pop(digest, None)
        if path is not None:
            _remove_whole(path)

    def shrink(self) -> None:
        """Keep the limit, now that nothing is in use."""
        with self._guard, suppress(OSError):  # nobody waits for it
            self._remove_oldest(self.limit - self._coming, set())

    def _make_room(self, size: int, in_use: set[Path]) -> None:
        with self._guard:
            self._coming += size
            self._remove_oldest(self.limit - self._coming, in_use)

    def _remove_oldest(self, most: int, in_use: set[Path]) -> None:
        """Remove groups until those that stay have at most `most` bytes."""
        entries = sorted(self._entries(), key=lambda entry: entry[2])
        held = sum(count for _, count, _ in entries)
        for path, count, _ in entries:
            if held <= most:
                break
            if path not in in_use:
                self._known.pop(path.name.split("-")[0], None)
                _remove_whole(path)
                held -= count

    def _entries(self) -> Iterator[tuple[Path, int, float]]:
        """(folder, bytes, last use) of every group. What killed processes left is removed on the way."""
        for entry in os.scandir(self.root):
            _, dash, size = entry.name.partition("-")
            try:
                used = entry.stat().st_mtime
            except FileNotFoundError:
                continue
            if dash and size.isdigit():
                yield Path(entry.path), int(size), used
            elif entry.name.endswith(PART) and time.time() - used > STALE_SECONDS:
                remove(Path(entry.path))

    def _fault(self, error: OSError) -> StoreError:
        return StoreError(
            f"cannot write the cache {self.root}: {error.strerror or error}; make room, or choose another folder by "
            "GMN_CACHE_DIR"
        )


def _remove_whole(path: Path) -> None:
    """Remove a folder so that nobody finds half of it."""
    gone = path.with_name(f"{path.name}.{uuid4().hex}{PART}")
    try:
        path.rename(gone)
    except FileNotFoundError:
        return  # another process was faster
    remove(gone)
