"""Replaces a store by a new one while others read the old: written beside it, switched in one step, deleted when free.

A reader holds the old folder open with a shared lock, so it stays on its own store whatever takes the name.
"""

import fcntl
import os
from pathlib import Path
from uuid import uuid4

from gmn_pipeline.disk.atomic_file import exchange, remove, sync
from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.files.manifest_file import manifest_at
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.store.writing.verbs import is_same_plan


def next_generation(path: Path, wanted: Manifest) -> Path:
    """Where to write a store that shall take the place of `path`: beside it, or there if no finished store is."""
    _delete_old(path)
    if not _is_store(path) or _unfinished(path, wanted):
        return path
    place = path.with_name(f"{path.name}.next")
    if place.exists() and not _unfinished(place, wanted):
        _retire(path, place)
    return place


def switch_generation(path: Path, place: Path) -> None:
    """Let `path` name the store at `place` from now on, and delete the old one unless it is being read."""
    exchange(path, place)
    sync(path.parent)
    _retire(path, place)


def _retire(path: Path, place: Path) -> None:
    place.rename(path.with_name(f"{path.name}.old-{uuid4().hex[:8]}"))
    _delete_old(path)


def _delete_old(path: Path) -> None:
    for old in (p for p in path.parent.iterdir() if p.name.startswith(f"{path.name}.old-")):
        descriptor = os.open(old, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # still read: the next writer of this store deletes it
        except OSError:
            pass  # a network file system that does not lock folders
        finally:
            os.close(descriptor)
        remove(old)


def _unfinished(path: Path, wanted: Manifest) -> bool:
    """Whether a writer of the same plan was interrupted here."""
    try:
        present = manifest_at(path)
    except StoreCorruptError:
        return False
    return present is not None and present.state == "writing" and is_same_plan(present, wanted)


def _is_store(path: Path) -> bool:
    try:
        return manifest_at(path) is not None
    except StoreCorruptError:  # a damaged manifest; what lies beside it tells
        return (path / "tokens").is_dir() and (path / "graph").is_dir()
