"""Where a run's store is now: at its path, or, after a move, near the run or the working folder by its content."""

from collections.abc import Iterator
from pathlib import Path

from gmn_pipeline.errors import StoreError
from gmn_pipeline.place import StorePlace, StoreUrl
from gmn_pipeline.store.files.manifest_file import read_manifest

LEVELS_UP = 5
"""Folders above a run that are looked at: data/runs/NAME/seed0-split0 lies four below the project."""


def locate_store(store: StorePlace, fingerprint: str | None, run: Path) -> StorePlace:
    """`store` if something is there; else a store of the same content near the run; else `store` all the same."""
    if fingerprint is None or isinstance(store, StoreUrl) or store.exists():
        return store
    return next((path for path in _candidates(store, run) if _holds(path, fingerprint)), store)


def _candidates(store: Path, run: Path) -> Iterator[Path]:
    """The same path seen from the run's folders first, then the same name, then any store there."""
    above = [Path(), *list(run.resolve().parents)[:LEVELS_UP]]
    if not store.is_absolute():
        yield from (folder / store for folder in above)
    places = [place for folder in above for place in (folder, folder / "data")]
    yield from (place / store.name for place in places)
    for place in places:
        yield from sorted(place.glob("*.zarr"))


def _holds(path: Path, fingerprint: str) -> bool:
    try:
        return (path / "zarr.json").is_file() and read_manifest(path).fingerprint == fingerprint
    except (StoreError, OSError):
        return False
