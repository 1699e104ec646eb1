"""Reads the manifest of a store on disk, without opening anything else of it."""

from pathlib import Path

from gmn_pipeline.errors import StoreError, StoreUnfinishedError
from gmn_pipeline.store.group_files import read_attributes
from gmn_pipeline.store.manifest import Manifest


def read_manifest(path: Path) -> Manifest:
    """The manifest of a finished store. Raises StoreError, StoreUnfinishedError, StoreCorruptError."""
    if not path.exists():
        raise StoreError(f"there is no store at {path}; make one with gmn-prep tokenize")
    if not (path / "zarr.json").exists():
        raise StoreError(f"{path} is not a token store (it has no zarr.json); make one with gmn-prep tokenize")
    manifest = Manifest.from_attributes(read_attributes(path), str(path))
    if manifest.state != "complete":
        raise StoreUnfinishedError(f"{path} is unfinished; run its gmn-prep tokenize command again to complete it")
    return manifest
