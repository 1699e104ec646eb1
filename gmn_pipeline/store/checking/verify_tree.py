"""Checks that a store has exactly the files it should have, and that its group documents say nothing else."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.files.array_files import REMEDY, read_group_document
from gmn_pipeline.store.files.storage import Storage
from gmn_pipeline.store.format.array_spec import ArraySpec
from gmn_pipeline.store.format.digests import CHECKSUMS, FACTS
from gmn_pipeline.store.format.manifest import CHECKSUM_ATTRIBUTE
from gmn_pipeline.store.format.schema import PARENTS, block_group, block_specs, fixed_groups

if TYPE_CHECKING:
    from gmn_pipeline.store.reading.reader import TokenStore

Groups = list[tuple[str, Mapping[str, ArraySpec]]]


def check_tree(store: "TokenStore") -> None:
    """Raise StoreCorruptError for a file, folder or attribute that is missing or too many."""
    groups: Groups = list(fixed_groups(store.manifest).items())
    groups += [
        (block_group(b), block_specs(store.manifest, store.block_facts(b))) for b in range(store.manifest.blocks)
    ]
    for folder, wanted in _upper_folders(groups):
        _check_names(store.storage, folder, wanted)
    _check_document(store.storage, "", {FACTS, CHECKSUM_ATTRIBUTE})
    for parent in PARENTS:
        check_parent(store.storage, parent)
    for group, specs in groups:
        check_group_tree(store.storage, group, specs)


def check_parent(storage: Storage, parent: str) -> None:
    """The document of a group that holds only groups."""
    _check_document(storage, parent, set())


def check_group_tree(storage: Storage, group: str, specs: Mapping[str, ArraySpec]) -> None:
    """The files, folders and attributes of one group. Follows no stray folder."""
    _check_names(storage, group, {"zarr.json", *(f"{name}/" for name in specs)})
    for name, spec in specs.items():
        array, last = f"{group}/{name}", len(spec.shape) - 1
        _check_names(storage, array, {"zarr.json"} if 0 in spec.shape else {"zarr.json", "c/"})
        for depth in range(0 if 0 in spec.shape else last + 1):
            _check_names(storage, f"{array}/c{'/0' * depth}", {"0" if depth == last else "0/"})
    _check_document(storage, group, {FACTS, CHECKSUMS})


def _upper_folders(groups: Groups) -> Iterator[tuple[str, set[str]]]:
    """The root and the parents, with the names that must be in them; a folder's end with `/`."""
    yield "", {"zarr.json", "graph/", *(f"{parent}/" for parent in PARENTS)}
    for parent in PARENTS:
        inside = {group.partition("/")[2] for group, _ in groups if group.startswith(f"{parent}/")}
        yield parent, {"zarr.json", *(f"{name}/" for name in inside)}


def _check_names(storage: Storage, folder: str, wanted: set[str]) -> None:
    for name in sorted(set(storage.list(folder)) ^ wanted):
        where = "/".join(part for part in (str(storage), folder, name.rstrip("/")) if part)
        if name in wanted:
            raise StoreCorruptError(f"{where} is missing; {REMEDY}")
        raise StoreCorruptError(f"{where} does not belong to the store; remove it")


def _check_document(storage: Storage, group: str, attributes: set[str]) -> None:
    document: dict[str, Any] = read_group_document(storage, group)
    present = document.pop("attributes", {})
    rest = {"zarr_format": 3, "node_type": "group"}
    fits = document in (rest, {**rest, "consolidated_metadata": None})
    if not fits or not isinstance(present, dict) or present.keys() != attributes:
        where = "/".join(part for part in (str(storage), group, "zarr.json") if part)
        raise StoreCorruptError(f"{where} was changed: it has other fields than a group of the format; {REMEDY}")
