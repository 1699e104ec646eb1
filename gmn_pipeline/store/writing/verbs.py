"""The three verbs of writing a store: create it, write its groups and blocks, finalise it.

    create_store(path, manifest, graph)
    store = TokenStore.open(path, unfinished=True)      # in any process, on any host that sees the folder
    write_block(path, number, block)
    finalise_store(path)

Every verb is idempotent and takes no lock: a group's bytes are a function of graph and settings, so a second writer
of the same group changes nothing. A group is written aside and renamed when whole; in an object store, which has no
rename, its zarr.json is created last.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace

from gmn_pipeline.errors import StoreClashError, StoreError
from gmn_pipeline.graph import Graph
from gmn_pipeline.place import StorePlace, as_place, make_way
from gmn_pipeline.store.files.array_files import document_name, open_array
from gmn_pipeline.store.files.group_writer import group_document
from gmn_pipeline.store.files.manifest_file import collect_digests, manifest_at, manifest_in, open_storage
from gmn_pipeline.store.files.places import target_at
from gmn_pipeline.store.format.blocks import plan_blocks
from gmn_pipeline.store.format.digests import FACTS
from gmn_pipeline.store.format.manifest import GraphFacts, Manifest, Scalar
from gmn_pipeline.store.format.schema import (
    PARENTS,
    ArraySpec,
    BlockFacts,
    all_groups,
    block_group,
    block_specs,
    fixed_groups,
)
from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_pipeline.store.format.words import Codec
from gmn_pipeline.types import Array


@dataclass(frozen=True)
class BlockArrays:
    """The tokens of consecutive nodes, as `docs/store-format.md` lays them out."""

    first_node: int
    nodes: Array
    node_ptr: Array
    edges: Array
    edge_ptr: Array
    walks: Array
    sizes: Array
    edge_sizes: Array
    edge_slots: Array | None = None

    def arrays(self) -> dict[str, Array]:
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "first_node"}
        return {name: array for name, array in named.items() if array is not None}

    @property
    def facts(self) -> BlockFacts:
        return BlockFacts(self.first_node, len(self.walks), len(self.nodes), len(self.edges))


def plan_manifest(
    graph: Graph,
    settings: TokenSettings,
    *,
    block_size: int,
    dataset: Mapping[str, Scalar] | None = None,
    encodings: Mapping[str, Mapping[str, Scalar]] | None = None,
    orderings: Mapping[str, Mapping[str, Scalar]] | None = None,
    codec: Codec = "raw",
) -> Manifest:
    """The manifest of a store that is about to be written."""
    return Manifest(
        dataset=dict(dataset or {"name": "unnamed"}),
        graph=GraphFacts.of(graph),
        task=graph.task,
        tokens=settings,
        encodings={name: dict(value) for name, value in (encodings or {}).items()},
        orderings={name: dict(value) for name, value in (orderings or {}).items()},
        codec=codec,
        block_size=block_size,
        blocks=plan_blocks(graph.num_nodes, block_size, graph.graph_ptr).size - 1,
    )


def create_store(place: str | StorePlace, manifest: Manifest, graph: Graph) -> Manifest:
    """Write the manifest, the graph and the list of blocks, as far as they are missing.

    Returns the manifest of what is there: a finished store of the same content stays as it is, packed in any way.
    Raises StoreClashError for other content, StoreError where the place cannot be written.
    """
    place = as_place(place)
    present = begin_store(place, manifest)
    if present.state == "complete":
        return present
    target = target_at(place)
    for parent in set(PARENTS) - target.having(PARENTS):
        target.create(document_name(parent), group_document({}))
    write_group(place, "graph", graph.arrays())
    blocks = plan_blocks(graph.num_nodes, manifest.block_size, graph.graph_ptr)
    write_group(place, "tokens/index", {"block_ptr": blocks})
    return present


def begin_store(place: StorePlace, manifest: Manifest) -> Manifest:
    """Write the manifest, unless it is there. Returns and raises as `create_store`."""
    target, present = target_at(place), manifest_at(place)
    if present is not None and not is_same_plan(present, manifest):
        raise StoreClashError(
            f"{place} holds {'an unfinished' if present.state == 'writing' else 'a'} store of other content "
            f"(fingerprint {present.fingerprint[:12]}, wanted {manifest.fingerprint[:12]}); {make_way(place)}"
        )
    if present is None:
        target.begin()
        target.create("zarr.json", group_document(manifest.as_attributes()))
        present = manifest
    return present


def has_group(place: StorePlace, group: str) -> bool:
    return bool(target_at(place).having([group]))


def missing_groups(place: StorePlace, manifest: Manifest) -> Iterator[str]:
    """The groups still to be written: those that are not blocks first."""
    groups = all_groups(manifest)
    there = target_at(place).having(groups)
    yield from (group for group in groups if group not in there)


def write_group(
    place: StorePlace,
    group: str,
    arrays: Mapping[str, Array],
    facts: Mapping[str, Scalar] | None = None,
    *,
    replace: bool = False,
) -> None:
    """Write one of the groups that are not blocks (`graph`, `encodings/laplacian`, ...), unless it is there."""
    if has_group(place, group) and not replace:
        return
    manifest = manifest_in(open_storage(place), unfinished=True)
    groups = fixed_groups(manifest)
    if group not in groups:
        raise StoreError(f"'{group}' is not part of this store's plan; it has {', '.join(groups)}")
    _check_arrays(group, arrays, groups[group])
    target_at(place).write_arrays(group, arrays, {FACTS: dict(facts or {})}, manifest.codec, replace=replace)


def write_block(place: StorePlace, number: int, block: BlockArrays, *, replace: bool = False) -> None:
    """Write one block of tokens, unless it is there. Safe from many processes at once, and when killed."""
    group = block_group(number)
    if has_group(place, group) and not replace:
        return
    storage = open_storage(place)
    manifest = manifest_in(storage, unfinished=True)
    spec = fixed_groups(manifest)["tokens/index"]["block_ptr"]
    borders = open_array(storage, "tokens/index/block_ptr", spec, manifest.codec).values
    first, end = (int(v) for v in borders[number : number + 2])
    facts = block.facts
    if (facts.first_node, facts.nodes) != (first, end - first):
        raise StoreError(f"block {number} holds nodes {first}..{end - 1}; was given {facts}")
    _check_arrays(f"block {number}", block.arrays(), block_specs(manifest, facts))
    target_at(place).write_arrays(group, block.arrays(), {FACTS: asdict(facts)}, manifest.codec, replace=replace)


def finalise_store(place: str | StorePlace) -> Manifest:
    """Complete the manifest once every group and block is there; readers accept the store from then on."""
    place = as_place(place)
    storage = open_storage(place)
    manifest = manifest_in(storage, unfinished=True)
    if manifest.state == "complete":
        return manifest
    missing = list(missing_groups(place, manifest))
    if missing:
        what = f"{missing[0]} and {len(missing) - 1} more are" if missing[1:] else f"{missing[0]} is"
        raise StoreError(f"{place} cannot be completed: {what} missing; run the parts that failed, then this again")
    digests, facts = collect_digests(storage, manifest)
    manifest = replace(
        manifest,
        state="complete",
        digests=digests,
        token_nodes=sum(f.token_nodes for f in facts),
        token_edges=sum(f.token_edges for f in facts),
    )
    target_at(place).replace("zarr.json", group_document(manifest.as_attributes()))
    return manifest


def is_same_plan(present: Manifest, wanted: Manifest) -> bool:
    """Whether a store that is there is this plan, finished or not. Packing counts while it is unfinished."""
    if present.state == "complete":
        return present.fingerprint == wanted.fingerprint and present.dataset == wanted.dataset
    return present == wanted.as_planned()


def _check_arrays(group: str, arrays: Mapping[str, Array], specs: Mapping[str, ArraySpec]) -> None:
    given = {name: ArraySpec(array.dtype, array.shape) for name, array in arrays.items()}
    if given != dict(specs):
        wrong = sorted(name for name in given.keys() | specs.keys() if given.get(name) != specs.get(name))
        raise StoreError(f"{group}: {wrong[0]} is {given.get(wrong[0])}, the format says {specs.get(wrong[0])}")
