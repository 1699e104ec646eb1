"""Looks at a finished store in milliseconds: is every file there, of the right size, and of this store?"""

from pathlib import Path

from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.files.array_files import REMEDY, array_bytes
from gmn_pipeline.store.files.manifest_file import collect_digests, manifest_in, open_storage
from gmn_pipeline.store.format.schema import block_group, block_specs, fixed_groups


def quick_check(path: Path) -> None:
    """Raise StoreCorruptError if a file is missing, has another size or belongs to another store. Reads no array."""
    storage = open_storage(path)
    manifest = manifest_in(storage)
    digests, facts = collect_digests(storage, manifest)
    groups = fixed_groups(manifest) | {block_group(b): block_specs(manifest, f) for b, f in enumerate(facts)}
    for group, digest in digests.items():
        if digest != manifest.digests.get(group):
            raise StoreCorruptError(f"{path}/{group} was replaced: it does not match the manifest; {REMEDY}")
    for group, specs in groups.items():
        for name, spec in specs.items():
            if manifest.codec == "raw" or 0 in spec.shape:
                array_bytes(storage, f"{group}/{name}", spec, manifest.codec)
            elif not storage.exists(f"{group}/{name}/c"):
                raise StoreCorruptError(f"{path}/{group}/{name}/c is missing; {REMEDY}")
