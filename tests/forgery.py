"""Forges stores: changes arrays or documents and seals everything again, as a hostile or mistaken writer would."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.store.files.array_files import array_checksum, block_facts, read_attributes
from gmn_pipeline.store.files.manifest_file import collect_digests, manifest_in
from gmn_pipeline.store.files.storage import LocalFolder
from gmn_pipeline.store.format.digests import CHECKSUMS, FACTS, digest_of
from gmn_pipeline.store.format.manifest import CHECKSUM_ATTRIBUTE
from gmn_pipeline.store.format.schema import block_specs, fixed_groups


def edit_document(file: Path, **changes: Any) -> None:
    """Change attributes of a group's zarr.json."""
    document = json.loads(file.read_text())
    document["attributes"].update(changes)
    file.write_text(json.dumps(document))


def edit_manifest(store: Path, **changes: Any) -> None:
    """Change the manifest, and its checksum and fingerprint with it."""
    attributes = json.loads((store / "zarr.json").read_text())["attributes"]
    body = attributes[FACTS]
    for name, value in changes.items():
        *path, last = name.split(".")
        inner = body
        for part in path:
            inner = inner[part]
        inner[last] = value
    content = {"graph": body["graph"]["fingerprint"], **{k: body[k] for k in ("tokens", "encodings", "orderings")}}
    body["fingerprint"] = digest_of(content)
    edit_document(store / "zarr.json", **{FACTS: body, CHECKSUM_ATTRIBUTE: digest_of(body)})


def chunk_of(array: Path) -> Path:
    return next(p for p in array.rglob("*") if p.name != "zarr.json" and not p.is_dir())


def poke(array: Path, dtype: str, place: Any, value: Any) -> None:
    """Overwrite numbers of a raw array, as a broken disk or a hostile hand would."""
    values = np.fromfile(chunk_of(array), dtype=dtype)
    values[place] = value
    values.tofile(chunk_of(array))


def seal(store: Path, group: str) -> None:
    """Make all checksums and digests fit what a group holds now."""
    storage = LocalFolder(store)
    manifest = manifest_in(storage, unfinished=True)
    if group in fixed_groups(manifest):
        specs = fixed_groups(manifest)[group]
    else:
        specs = block_specs(manifest, block_facts(read_attributes(storage, group), group))
    sums = {name: array_checksum(storage, f"{group}/{name}", spec, manifest.codec) for name, spec in specs.items()}
    edit_document(store / group / "zarr.json", **{CHECKSUMS: sums})
    edit_manifest(store, digests=collect_digests(storage, manifest)[0])
