"""Reads manifests and the digests of groups, of finished and of unfinished stores."""

from pathlib import Path

from gmn_pipeline.errors import StoreError, StoreUnfinishedError
from gmn_pipeline.store.array_files import block_facts, read_attributes
from gmn_pipeline.store.digests import digest_of, group_digest
from gmn_pipeline.store.manifest import Manifest
from gmn_pipeline.store.schema import BlockFacts, block_group, fixed_groups
from gmn_pipeline.store.storage import LocalFolder, Storage


def open_storage(path: str | Path) -> Storage:
    """The place where a store is kept. Raises StoreError where there is none."""
    path = Path(path)
    if not path.exists():
        raise StoreError(f"there is no store at {path}; make one with gmn-prep tokenize")
    storage = LocalFolder(path)
    if not storage.exists("zarr.json"):
        raise StoreError(f"{path} is not a token store (it has no zarr.json); make one with gmn-prep tokenize")
    return storage


def manifest_in(storage: Storage, *, unfinished: bool = False) -> Manifest:
    """The manifest; StoreUnfinishedError if the store is not complete, unless that is allowed."""
    manifest = Manifest.from_attributes(read_attributes(storage, ""), str(storage))
    if manifest.state != "complete" and not unfinished:
        raise StoreUnfinishedError(f"{storage} is unfinished; run its gmn-prep tokenize command again to complete it")
    return manifest


def read_manifest(path: Path) -> Manifest:
    """The manifest of a finished store. Raises StoreError, StoreUnfinishedError, StoreCorruptError."""
    return manifest_in(open_storage(path))


def manifest_at(path: Path) -> Manifest | None:
    """The manifest of the store at `path`, finished or not; None where there is none yet."""
    return manifest_in(open_storage(path), unfinished=True) if (path / "zarr.json").exists() else None


def collect_digests(storage: Storage, manifest: Manifest) -> tuple[dict[str, str], list[BlockFacts]]:
    """A digest per group from the checksums it carries, and the facts of every block."""
    digests = {group: group_digest(read_attributes(storage, group)) for group in fixed_groups(manifest)}
    blocks, facts = [], []
    for number in range(manifest.blocks):
        group = block_group(number)
        attributes = read_attributes(storage, group)
        blocks.append(group_digest(attributes))
        facts.append(block_facts(attributes, f"{storage}/{group}"))
    digests["tokens"] = digest_of(blocks)
    return digests, facts
