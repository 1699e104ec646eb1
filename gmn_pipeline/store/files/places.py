"""The one place that chooses, by a store's path or URL, how it is read and written."""

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gmn_pipeline.errors import StoreError, nearest
from gmn_pipeline.place import StorePlace, StoreUrl
from gmn_pipeline.store.files.storage import LocalFolder, Storage
from gmn_pipeline.store.files.target import FolderTarget, Target

if TYPE_CHECKING:
    from gmn_pipeline.store.objects.client import Objects

MAKE_ONE = "make one with gmn-prep tokenize"


def storage_at(place: StorePlace, *, fresh: bool = False) -> Storage:
    """What reads the store at a place; fresh: past the cache of far stores. StoreError where there is none."""
    if isinstance(place, StoreUrl):
        from gmn_pipeline.store.objects.storage import ObjectStorage

        objects = objects_at(place)
        root = objects.root()
        if root is None:
            raise StoreError(f"there is no store at {place}; {MAKE_ONE}")
        return ObjectStorage(objects, root, fresh=fresh)
    if not place.exists():
        beside = [other.name for other in place.parent.iterdir()] if place.parent.is_dir() else []
        near = nearest(place.name, [name for name in beside if name.endswith(".zarr")])
        raise StoreError(f"there is no store at {place}{near}; {MAKE_ONE}")
    if place.is_file():
        raise StoreError(f"{place} is a file, not a token store; {MAKE_ONE} --dataset {place}")
    storage = LocalFolder(place)
    if not storage.exists("zarr.json"):
        raise StoreError(f"{place} is not a token store (it has no zarr.json); {MAKE_ONE}")
    return storage


def has_root(place: StorePlace) -> bool:
    """Whether a store was at least begun at a place."""
    return objects_at(place).root() is not None if isinstance(place, StoreUrl) else (place / "zarr.json").exists()


def target_at(place: StorePlace) -> Target:
    """What writes a store at a place."""
    if isinstance(place, StoreUrl):
        from gmn_pipeline.store.objects.target import ObjectTarget

        return ObjectTarget(objects_at(place))
    return FolderTarget(place)


def stored_bytes(place: StorePlace, folder: str = "") -> int:
    """The bytes of all files at a place, or in a folder there; 0 where there is nothing."""
    if isinstance(place, StoreUrl):
        return sum(objects_at(place).sizes(folder).values())
    total = 0
    for parent, _, names in os.walk(place / folder):  # another process may write and rename meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(parent) / name).stat().st_size
    return total


def objects_at(url: StoreUrl) -> "Objects":
    """The objects of a store; one client per process and surroundings."""
    return _objects(url, os.getpid(), tuple((k, v) for k, v in sorted(os.environ.items()) if k.startswith("AWS_")))


@lru_cache(16)
def _objects(url: StoreUrl, process: int, surroundings: tuple[tuple[str, str], ...]) -> "Objects":  # noqa: ARG001
    from gmn_pipeline.store.objects.client import Objects

    return Objects(url)
