"""Reads manifests and the digests of groups, of finished and of unfinished stores."""

from gmn_pipeline.errors import StoreUnfinishedError
from gmn_pipeline.place import StorePlace, as_place
from gmn_pipeline.store.files.array_files import block_facts, read_attributes
from gmn_pipeline.store.files.places import has_root, storage_at
from gmn_pipeline.store.files.storage import Storage
from gmn_pipeline.store.format.digests import digest_of, group_digest
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.store.format.schema import BlockFacts, block_group, fixed_groups


def open_storage(place: str | StorePlace, *, fresh: bool = False) -> Storage:
    """The place where a store is kept; fresh: past the cache of far stores. Raises StoreError where there is none."""
    return storage_at(as_place(place), fresh=fresh)


def manifest_in(storage: Storage, *, unfinished: bool = False) -> Manifest:
    """The manifest; StoreUnfinishedError if the store is not complete, unless that is allowed."""
    manifest = Manifest.from_attributes(read_attributes(storage, ""), str(storage))
    if manifest.state != "complete" and not unfinished:
        raise StoreUnfinishedError(f"{storage} is unfinished; run its gmn-prep tokenize command again to complete it")
    return manifest


def read_manifest(place: StorePlace) -> Manifest:
    """The manifest of a finished store. Raises StoreError, StoreUnfinishedError, StoreCorruptError."""
    return manifest_in(open_storage(place))


def manifest_at(place: StorePlace) -> Manifest | None:
    """The manifest of the store at a place, finished or not; None where there is none yet."""
    return manifest_in(open_storage(place), unfinished=True) if has_root(place) else None


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
