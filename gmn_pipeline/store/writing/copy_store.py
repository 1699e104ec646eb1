"""Copies a finished store between any two places: folders and object stores. Byte for byte, and checked.

Each group is checked before it is sent. When all are there, the copy is read back and every byte compared with its
checksum; the manifest comes last. An interrupted copy continues with the groups that are missing.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from gmn_pipeline.errors import ConfigError, StoreClashError
from gmn_pipeline.place import StorePlace
from gmn_pipeline.store.checking.byte_check import check_group_bytes
from gmn_pipeline.store.checking.verify_tree import check_group_tree
from gmn_pipeline.store.files.array_files import MOST_DOCUMENT, block_facts, document_name, read_attributes
from gmn_pipeline.store.files.manifest_file import collect_digests, manifest_at, manifest_in, open_storage
from gmn_pipeline.store.files.places import target_at
from gmn_pipeline.store.files.storage import Storage
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.store.format.schema import PARENTS, all_groups, block_specs, fixed_groups
from gmn_pipeline.store.writing.verbs import begin_store, missing_groups

GROUPS_AT_ONCE = 4


def copy_steps(manifest: Manifest) -> int:
    """How often `copy_store` reports."""
    return 2 * len(all_groups(manifest))


def copy_store(source: StorePlace, copied: StorePlace, on_progress: Callable[[int], None] = lambda _: None) -> int:
    """Copy a store; returns the number of groups that were not there yet. `on_progress(1)` after each group.

    Raises StoreClashError where other content is in the way, StoreCorruptError where either store is damaged.
    """
    if source == copied:
        raise ConfigError(f"{source} cannot be copied to itself; choose another place")
    storage, target = open_storage(source, fresh=True), target_at(copied)
    manifest = manifest_in(storage)
    present = manifest_at(copied)
    if present is not None and present.state == "complete":
        if present != manifest:
            raise StoreClashError(f"{copied} holds another store, or this one packed otherwise; choose another place")
        missing = set[str]()
    else:
        begin_store(copied, manifest.as_planned())
        missing = set(missing_groups(copied, manifest))
        for name in map(document_name, PARENTS):
            target.create(name, storage.read(name, MOST_DOCUMENT))

    def send(group: str) -> None:
        if group in missing:
            _check_group(storage, group, manifest)
            target.put_group(group, storage.folder(group))

    _each(send, all_groups(manifest), on_progress)
    written = open_storage(copied, fresh=True)
    _each(lambda group: _check_group(written, group, manifest), all_groups(manifest), on_progress)
    if collect_digests(written, manifest)[0] != manifest.digests:
        raise StoreClashError(f"{copied} has groups of another store; remove it, then copy again")
    if present is None or present.state != "complete":
        target.replace("zarr.json", storage.read("zarr.json", MOST_DOCUMENT))
    return len(missing)


def _check_group(storage: Storage, group: str, manifest: Manifest) -> None:
    """Its files and its bytes."""
    specs = fixed_groups(manifest).get(group)
    if specs is None:
        specs = block_specs(manifest, block_facts(read_attributes(storage, group), f"{storage}/{group}"))
    check_group_tree(storage, group, specs)
    check_group_bytes(storage, group, specs, manifest.codec)


def _each(work: Callable[[str], None], groups: Iterable[str], on_progress: Callable[[int], None]) -> None:
    pool = ThreadPoolExecutor(GROUPS_AT_ONCE)
    try:
        for _ in pool.map(work, groups):
            on_progress(1)
    finally:
        pool.shutdown(cancel_futures=True)
