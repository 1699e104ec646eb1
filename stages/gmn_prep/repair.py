"""`gmn-prep repair`: writes the missing and damaged parts of a finished store again, and nothing else.

What a store holds is a function of its graph and its manifest, so the parts come out as they were, bit for bit: the
manifest's digests prove it. Only the manifest itself, and a graph without its dataset, cannot be made again.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from gmn_pipeline.disk.lock import release_lock
from gmn_pipeline.errors import GmnError, StoreError
from gmn_pipeline.store.checking.byte_check import check_group_bytes
from gmn_pipeline.store.checking.verify import verification_steps, verify_store
from gmn_pipeline.store.checking.verify_tree import check_group_tree, check_parent
from gmn_pipeline.store.files.array_files import read_attributes
from gmn_pipeline.store.files.group_writer import write_document
from gmn_pipeline.store.files.manifest_file import collect_digests, manifest_in, open_storage
from gmn_pipeline.store.format.blocks import plan_blocks
from gmn_pipeline.store.format.digests import group_digest
from gmn_pipeline.store.format.manifest import GraphFacts, Manifest
from gmn_pipeline.store.format.schema import PARENTS, block_group, block_specs, fixed_groups
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_pipeline.store.writing.verbs import write_block, write_group
from gmn_pipeline.store.writing.writer import lock_store
from gmn_prep.encodings import compute_encoding
from gmn_prep.orderings import compute_ordering
from gmn_prep.phases import Phases
from gmn_prep.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from gmn_pipeline.graph import Graph
    from gmn_pipeline.types import Array


def repair_store(path: Path, phases: Phases, *, threads: int = 1, graph: "Graph | None" = None) -> list[str]:
    """Write again what is missing or damaged, then verify the store. Returns the names of the parts written.

    graph: the dataset's, for a store whose own graph is damaged. Raises StoreError where a part cannot be made again.
    """
    manifest = manifest_in(open_storage(path))
    lock = lock_store(path, wait=-1)
    try:
        parts = [*_repair_parents(path), *_repair_fixed(path, manifest, graph, phases, threads)]
        parts += _repair_blocks(path, manifest, phases, threads)
        store = TokenStore.open(path)
        with phases.phase("verify", verification_steps(store), "groups") as advance:
            verify_store(store, advance)
    finally:
        release_lock(lock)
    return parts


def _repair_parents(path: Path) -> Iterator[str]:
    for parent in PARENTS:
        try:
            check_parent(open_storage(path), parent)
        except GmnError:
            write_document(path, parent, {})
            yield f"{parent}/zarr.json"


def _repair_fixed(path: Path, manifest: Manifest, graph: "Graph | None", phases: Phases, threads: int) -> Iterator[str]:
    """The groups that are not blocks; the graph first, because all others follow from it."""
    for group, specs in fixed_groups(manifest).items():
        storage = open_storage(path)
        try:
            check_group_tree(storage, group, specs)
            check_group_bytes(storage, group, specs, manifest.codec)
            if group_digest(read_attributes(storage, group)) == manifest.digests[group]:
                continue
        except GmnError:
            pass
        if group == "graph":
            arrays = _given_graph(path, manifest, graph)
        else:
            with phases.phase(group, 1, "group"):
                arrays = _compute_group(_unchecked(path, manifest).graph, manifest, group, threads)
        write_group(path, group, arrays, replace=True)
        if group_digest(read_attributes(storage, group)) != manifest.digests[group]:
            raise StoreError(
                f"{path}/{group} comes out different on this processor; make the store again with gmn-prep tokenize "
                "--force"
            )
        yield group


def _given_graph(path: Path, manifest: Manifest, graph: "Graph | None") -> "dict[str, Array]":
    if graph is None:
        raise StoreError(f"{path}/graph is damaged; run the store's gmn-prep tokenize command, which reads the dataset")
    if GraphFacts.of(graph) != manifest.graph:
        raise StoreError(f"{path}/graph is damaged and the dataset has changed; use gmn-prep tokenize --force")
    return graph.arrays()


def _compute_group(graph: "Graph", manifest: Manifest, group: str, threads: int) -> "dict[str, Array]":
    kind, _, name = group.partition("/")
    if kind == "encodings":
        return dict(compute_encoding(graph, name, manifest.encodings[name], threads=threads).arrays)
    if kind == "orderings":
        seed = int(manifest.orderings[name]["seed"] or 0)
        return asdict(compute_ordering(graph, name, seed=seed, threads=threads))
    return {"block_ptr": plan_blocks(graph.num_nodes, manifest.block_size, graph.graph_ptr)}


def _repair_blocks(path: Path, manifest: Manifest, phases: Phases, threads: int) -> list[str]:
    store = _unchecked(path, manifest)
    damaged = [b for b in range(manifest.blocks) if not _is_whole(store, b)]
    _write_blocks(store, damaged, phases, threads)
    if collect_digests(store.storage, manifest)[0]["tokens"] != manifest.digests["tokens"]:
        # A block of another store is whole by itself; only the digest of all blocks tells, and not which one.
        others = sorted(set(range(manifest.blocks)) - set(damaged))
        before = {b: read_attributes(store.storage, block_group(b)) for b in others}
        _write_blocks(store, others, phases, threads)
        damaged += [b for b in others if read_attributes(store.storage, block_group(b)) != before[b]]
    return [block_group(b) for b in sorted(damaged)]


def _is_whole(store: TokenStore, number: int) -> bool:
    try:
        specs, group = block_specs(store.manifest, store.block_facts(number)), block_group(number)
        check_group_tree(store.storage, group, specs)
        check_group_bytes(store.storage, group, specs, store.manifest.codec)
    except GmnError:
        return False
    return True


def _write_blocks(store: TokenStore, numbers: list[int], phases: Phases, threads: int) -> None:
    if not numbers:
        return
    tokenizer = Tokenizer.of(store.graph, store.settings)
    with ThreadPoolExecutor(threads) as pool, phases.phase("tokens", len(numbers), "blocks") as advance:
        for number in numbers:
            first, last = (int(v) for v in store.block_ptr[number : number + 2])
            write_block(store.path, number, tokenizer.block(first, last, pool), replace=True)
            advance(1)


def _unchecked(path: Path, manifest: Manifest) -> TokenStore:
    """The store as far as it goes: opening it in the usual way would refuse missing blocks."""
    return TokenStore(path, open_storage(path), manifest, 1 << 30, 1 << 29)
