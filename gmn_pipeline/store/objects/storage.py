"""A store in an object store as a reader sees it: groups are fetched whole into a local cache, and mapped there."""

import json
import mmap
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from threading import Lock, Thread
from typing import TypeVar

import xxhash

from gmn_pipeline.errors import StoreCorruptError, StoreError
from gmn_pipeline.store.files.array_files import MOST_DOCUMENT
from gmn_pipeline.store.files.storage import LocalFolder
from gmn_pipeline.store.format.digests import CHECKSUMS, group_digest
from gmn_pipeline.store.format.schema import PARENTS
from gmn_pipeline.store.objects.client import PIECE, Objects
from gmn_pipeline.store.objects.group_cache import PART, GroupCache

GROUPS_AHEAD = 4
"""Groups fetched at a time before they are asked for."""
CHANGED = "was changed since it was written, or on its way; copy the store again, or tokenize to another --out"

Read = TypeVar("Read")


class ObjectStorage:
    """Reads a store's groups through the cache. Safe to use from several threads."""

    def __init__(self, objects: Objects, root: bytes, *, fresh: bool = False) -> None:
        """root: the root's document. fresh: read everything anew, into a cache that ends with this object."""
        self._objects, self._root = objects, root
        self._cache = GroupCache.of_user()
        if fresh:
            folder = mkdtemp(suffix=PART, dir=self._cache.root)
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._cache = GroupCache(Path(folder), self._cache.limit)
        else:
            weakref.finalize(self, self._cache.shrink)  # what was mapped until then may have exceeded the limit
        self.room: int | None = self._cache.limit // 2
        self._documents, self._digests = dict[str, bytes](), dict[str, str]()
        self._mapped: weakref.WeakKeyDictionary[mmap.mmap, Path] = weakref.WeakKeyDictionary()
        self._guard, self._fetching = Lock(), dict[str, Lock]()
        self._checked: set[str] = set()
        self._queue: deque[str] = deque()
        self._ahead: dict[str, int] = {}
        """Groups fetched ahead and not read yet, with their bytes."""
        self._lanes = self._largest = 0
        """Threads that fetch ahead, and the bytes of the largest group so far."""
        self._names_below = lru_cache(2)(objects.sizes)

    def __str__(self) -> str:
        return str(self._objects)

    def read(self, name: str, most: int) -> bytes:
        group, inside = _split(name)
        if name == "zarr.json":
            return self._root
        if group is None:
            return self._objects.get(name, most)
        if inside == "zarr.json":
            return self._document(group)
        return self._from_cache(group, lambda folder: folder.read(inside, most))

    def map(self, name: str, size: int) -> mmap.mmap:
        group, inside = _split(name)
        assert group is not None, f"{name} is a document"
        return self._from_cache(group, lambda folder: self._note(folder.map(inside, size), folder.path))

    def list(self, folder: str) -> list[str]:
        group, _ = _split(f"{folder}/*")
        if group is None:
            return self._objects.list(folder)
        inside = [name.removeprefix(f"{folder}/") for name in self._names_below(group) if name.startswith(f"{folder}/")]
        return sorted({name.split("/")[0] + "/" * ("/" in name) for name in inside})

    def exists(self, name: str) -> bool:
        return self._objects.exists(name)

    def folder(self, group: str) -> Path:
        with self._guard:
            was_ahead = self._ahead.pop(group, None) is not None
            with suppress(ValueError):
                self._queue.remove(group)  # or it would be fetched again once it is used and removed
        if was_ahead:
            self._start_lanes()
        return self._fetch(group)[0]

    def expect(self, groups: Iterable[str]) -> None:
        """Begin to fetch groups, as far as half of the mappable room is not yet filled with what nobody has read."""
        with self._guard:
            self._queue.extend(group for group in groups if not self._is_near(group) and group not in self._queue)
        self._start_lanes()

    def _from_cache(self, group: str, act: Callable[[LocalFolder], Read]) -> Read:
        """Read from a group's folder; from a new one if another process removed it meanwhile."""
        path = self.folder(group)
        try:
            return act(LocalFolder(path, f"{self}/{group}"))
        except StoreError:
            self._cache.drop(self._digest(group))
            return act(LocalFolder(self.folder(group), f"{self}/{group}"))

    def _fetch(self, group: str) -> tuple[Path, int]:
        """The group's folder in the cache, and the bytes that were fetched for it: 0 where it was there already."""
        digest, size = self._digest(group), 0
        with self._alone(group):
            path = self._cache.find(digest)
            if path is not None and group not in self._checked and self._changed_array(path, group) is not None:
                self._cache.drop(digest)  # the disk has lost something
                path = None
            if path is None:
                sizes = self._objects.sizes(group)
                size = sum(sizes.values())
                with self._guard:
                    self._largest = max(self._largest, size)
                    in_use = set(self._mapped.values())
                path = self._cache.add(digest, size, lambda to: self._fill(to, group, sizes), in_use)
            self._checked.add(group)
            return path, size

    def _fill(self, to: Path, group: str, names: Iterable[str]) -> None:
        inside = [PurePosixPath(name).relative_to(group) for name in names]
        if any(".." in name.parts for name in inside):
            raise StoreCorruptError(f"{self}/{group} holds names that leave the store; remove them")
        self._objects.each(lambda name: self._objects.fetch(f"{group}/{name}", to / name), inside)
        if array := self._changed_array(to, group):
            raise StoreCorruptError(f"{self}/{group}/{array} {CHANGED}")

    def _changed_array(self, folder: Path, group: str) -> str | None:
        """The first array in a group's folder that does not have its checksum."""
        checksums = json.loads(self._document(group))["attributes"].get(CHECKSUMS)
        if not isinstance(checksums, dict):
            return None  # the reader refuses such a group
        return next((array for array, wanted in checksums.items() if _checksum(folder / array) != wanted), None)

    def _document(self, group: str) -> bytes:
        """A group's zarr.json. The first of a block brings all blocks': a reader holds them against the manifest."""
        if group not in self._documents:
            with self._alone("documents"):
                groups = [group] if group not in self._documents else []
                if groups and group.startswith("tokens/b"):
                    groups = [f"tokens/{name[:-1]}" for name in self._objects.list("tokens") if name.startswith("b")]
                self._documents |= zip(groups, self._objects.each(self._get_document, groups), strict=True)
        if group not in self._documents:
            raise StoreCorruptError(f"{self}/{group}/zarr.json is missing")
        return self._documents[group]

    def _get_document(self, group: str) -> bytes:
        return self._objects.get(f"{group}/zarr.json", MOST_DOCUMENT)

    def _digest(self, group: str) -> str:
        if group not in self._digests:
            try:
                self._digests[group] = group_digest(json.loads(self._document(group))["attributes"])
            except (ValueError, TypeError, KeyError, AttributeError):
                raise StoreCorruptError(f"{self}/{group}/zarr.json {CHANGED}") from None
        return self._digests[group]

    def _is_near(self, group: str) -> bool:
        return self._digests.get(group, "") in self._cache

    def _note(self, mapping: mmap.mmap, folder: Path) -> mmap.mmap:
        with self._guard:
            self._mapped[mapping] = folder
        return mapping

    @contextmanager
    def _alone(self, group: str) -> Iterator[None]:
        """One thread at a time fetches a group."""
        with self._guard:
            lock = self._fetching.setdefault(group, Lock())
        with lock:
            yield

    def _start_lanes(self) -> None:
        with self._guard:
            most = GROUPS_AHEAD if self._largest else 1  # one tells how large they are
            for _ in range(min(len(self._queue), most - self._lanes)):
                self._lanes += 1
                Thread(target=self._fetch_ahead, daemon=True).start()

    def _fetch_ahead(self) -> None:
        """Fetch what waits, as far as there is room, then end: an idle thread would keep the store open."""
        while True:
            with self._guard:
                coming = self._lanes * self._largest
                if not self._queue or sum(self._ahead.values()) + coming > (self.room or 0) // 2:
                    self._lanes -= 1
                    return
                group = self._queue.popleft()
            try:
                _, size = self._fetch(group)
            except StoreError:
                continue  # raised when it is read
            if size:
                with self._guard:
                    self._ahead[group] = size
                self._start_lanes()


def _split(name: str) -> tuple[str | None, str]:
    """The group a file belongs to, None for the root's and the parents' documents, and its name in there."""
    first, _, rest = name.partition("/")
    if first == "graph" and rest:
        return first, rest
    second, _, inside = rest.partition("/")
    return (f"{first}/{second}", inside) if first in PARENTS and inside else (None, name)


def _checksum(array: Path) -> str:
    """What a group keeps of an array: the digest of its zarr.json, then of its chunks in order."""
    try:
        digest = xxhash.xxh3_128((array / "zarr.json").read_bytes())
    except FileNotFoundError:
        return "missing"
    chunks = [file for file in array.glob("c/**/*") if file.is_file()]
    for chunk in sorted(chunks, key=lambda file: [int(part) for part in file.relative_to(array / "c").parts]):
        with chunk.open("rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
    return digest.hexdigest()
