"""Encodings in parts: ranges of rows that any process computes and leaves beside the store, joined by one writer."""

from pathlib import Path

import numpy as np

from gmn_pipeline.errors import StoreError
from gmn_pipeline.graph import Graph
from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.store.format.schema import fixed_groups
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_pipeline.store.writing.verbs import has_group
from gmn_pipeline.tables import load_code
from gmn_pipeline.types import Array
from gmn_prep.encodings import ENCODINGS, join_rows
from gmn_prep.encodings.random_walk.row_chunks import Chunk, encoding_chunks, workers
from gmn_prep.parts.shared_arrays import map_shared, parts_folder, write_shared

LEAST_ROWS, MOST_PARTS = 256, 4096
"""Of a part: large enough to be worth a task, small enough to share out over many workers."""


def can_be_cut(name: str) -> bool:
    return ENCODINGS[name].fill is not None


def share_encoding(path: Path, manifest: Manifest, graph: Graph, name: str) -> list[Chunk]:
    """Write what every range of rows reads; returns the ranges."""
    folder = parts_folder(path, manifest) / name
    shared = map_shared(folder / "shared")
    if shared is None:
        with workers(1):
            shared = load_code(ENCODINGS[name].share or dict)(graph, manifest.encodings[name])
        write_shared(folder / "shared", shared)
    return encoding_chunks(graph, shared, parts=max(1, min(MOST_PARTS, graph.num_nodes // LEAST_ROWS)))


def write_encoding_rows(store: TokenStore, name: str, lo: int, hi: int) -> None:
    """Compute rows lo .. hi of an encoding and leave them beside the store, unless they are there."""
    assert isinstance(store.path, Path), "rows of an encoding are shared in a folder"
    manifest, folder = store.manifest, parts_folder(store.path, store.manifest) / name
    if _rows(folder, lo).is_dir():
        return
    shared = map_shared(folder / "shared")
    if shared is None:
        if has_group(store.path, f"encodings/{name}"):  # another process was faster and has tidied up
            return
        raise StoreError(f"{folder}/shared is missing; run the command that plans {store.path} again")
    specs = fixed_groups(manifest)[f"encodings/{name}"]
    out = {array: np.empty((hi - lo, *spec.shape[1:]), spec.dtype) for array, spec in specs.items()}
    with workers(1):
        load_code(ENCODINGS[name].fill or dict)(store.graph, shared, manifest.encodings[name], lo, hi, out)
    write_shared(_rows(folder, lo), out)


def join_encoding(path: Path, manifest: Manifest, name: str, chunks: list[Chunk]) -> dict[str, Array]:
    """The arrays of an encoding, from the rows of all ranges in their order; none where the store has them already."""
    folder = parts_folder(path, manifest) / name
    shared, parts = map_shared(folder / "shared"), [map_shared(_rows(folder, lo)) for lo, _ in chunks]
    whole = [part for part in parts if part is not None]
    if shared is None or len(whole) < len(chunks):
        if has_group(path, f"encodings/{name}"):
            return {}
        raise StoreError(f"{folder} lost some of its parts while it was joined; run the same command again")
    rows = {
        array: np.concatenate([np.empty((0, *spec.shape[1:]), spec.dtype), *(part[array] for part in whole)])
        for array, spec in fixed_groups(manifest)[f"encodings/{name}"].items()
    }
    return join_rows(shared, rows)


def _rows(folder: Path, lo: int) -> Path:
    return folder / "rows" / f"{lo:012d}"
