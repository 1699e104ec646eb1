"""Encodings in parts: ranges of rows that any process computes, joined by one writer.

Beside a store in a folder, rows are left as files: a coordinator that dies loses none of them. Beside one in object
storage there is no such place, so workers derive what rows share from the graph and hand their rows over.
"""

from collections.abc import Mapping, Sequence
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


def share_encoding(path: Path, manifest: Manifest, graph: Graph, name: str, threads: int) -> list[Chunk]:
    """Write what every range of rows reads; returns the ranges."""
    folder = parts_folder(path, manifest) / name
    shared = map_shared(folder / "shared")
    if shared is None:
        shared = compute_shared(manifest, graph, name, threads)
        write_shared(folder / "shared", shared)
    return cut_rows(graph, shared)


def compute_shared(manifest: Manifest, graph: Graph, name: str, threads: int) -> dict[str, Array]:
    """What every range of rows reads."""
    with workers(threads) as team:
        shared: dict[str, Array] = load_code(ENCODINGS[name].share or dict)(graph, manifest.encodings[name], team)
    return shared


def cut_rows(graph: Graph, shared: Mapping[str, Array]) -> list[Chunk]:
    """The ranges of rows, which depend on the graph alone."""
    return encoding_chunks(graph, shared, parts=max(1, min(MOST_PARTS, graph.num_nodes // LEAST_ROWS)))


def write_encoding_rows(store: TokenStore, name: str, lo: int, hi: int) -> None:
    """Compute rows lo .. hi of an encoding and leave them beside the store, unless they are there."""
    assert isinstance(store.path, Path), "rows of an encoding are shared in a folder"
    folder = parts_folder(store.path, store.manifest) / name
    if _rows(folder, lo).is_dir():
        return
    shared = map_shared(folder / "shared")
    if shared is None:
        if has_group(store.path, f"encodings/{name}"):  # another process was faster and has tidied up
            return
        raise StoreError(f"{folder}/shared is missing; run the command that plans {store.path} again")
    write_shared(_rows(folder, lo), compute_rows(store, shared, name, lo, hi))


def compute_rows(store: TokenStore, shared: Mapping[str, Array], name: str, lo: int, hi: int) -> dict[str, Array]:
    """Rows lo .. hi of every array of an encoding."""
    manifest = store.manifest
    specs = fixed_groups(manifest)[f"encodings/{name}"]
    out = {array: np.empty((hi - lo, *spec.shape[1:]), spec.dtype) for array, spec in specs.items()}
    with workers(1):
        load_code(ENCODINGS[name].fill or dict)(store.graph, shared, manifest.encodings[name], lo, hi, out)
    return out


def join_encoding(path: Path, manifest: Manifest, name: str, chunks: list[Chunk]) -> dict[str, Array]:
    """The arrays of an encoding, from the rows of all ranges in their order; none where the store has them already."""
    folder = parts_folder(path, manifest) / name
    shared, parts = map_shared(folder / "shared"), [map_shared(_rows(folder, lo)) for lo, _ in chunks]
    whole = [part for part in parts if part is not None]
    if shared is None or len(whole) < len(chunks):
        if has_group(path, f"encodings/{name}"):
            return {}
        raise StoreError(f"{folder} lost some of its parts while it was joined; run the same command again")
    return join_parts(manifest, name, shared, whole)


def join_parts(
    manifest: Manifest, name: str, shared: Mapping[str, Array], parts: Sequence[Mapping[str, Array]]
) -> dict[str, Array]:
    """The arrays of an encoding, from the rows of all ranges in their order."""
    rows = {
        array: np.concatenate([np.empty((0, *spec.shape[1:]), spec.dtype), *(part[array] for part in parts)])
        for array, spec in fixed_groups(manifest)[f"encodings/{name}"].items()
    }
    return join_rows(shared, rows)


def _rows(folder: Path, lo: int) -> Path:
    return folder / "rows" / f"{lo:012d}"
