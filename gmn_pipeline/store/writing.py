"""The three verbs of writing a store: create it, write its groups and blocks, finalise it.

    create_store(path, manifest, graph)
    store = TokenStore.open(path, unfinished=True)      # in any process, on any host that sees the folder
    write_block(path, number, block)
    finalise_store(path)

Every verb is idempotent and takes no lock: a group's bytes are a function of graph and settings, so a second writer
of the same group changes nothing. A group is written aside and renamed when whole.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from gmn_pipeline.errors import StoreClashError, StoreError
from gmn_pipeline.graph import Graph
from gmn_pipeline.store.array_files import open_array
from gmn_pipeline.store.blocks import plan_blocks
from gmn_pipeline.store.digests import FACTS
from gmn_pipeline.store.group_writer import WIP, write_arrays, write_document
from gmn_pipeline.store.manifest import GraphFacts, Manifest, Scalar
from gmn_pipeline.store.manifest_file import collect_digests, manifest_at, manifest_in, open_storage
from gmn_pipeline.store.schema import PARENTS, ArraySpec, BlockFacts, block_group, block_specs, fixed_groups
from gmn_pipeline.store.storage import LocalFolder
from gmn_pipeline.store.token_settings import Codec, TokenSettings
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


def create_store(path: str | Path, manifest: Manifest, graph: Graph) -> Manifest:
    """Write the manifest, the graph and the list of blocks, as far as they are missing.

    Returns the manifest of what is there: a finished store of the same content stays as it is, packed in any way.
    Raises StoreClashError for other content, StoreError where the disk cannot be written.
    """
    path = Path(path)
    present = manifest_at(path)
    if present is not None and not is_same_plan(present, manifest):
        raise StoreClashError(
            f"{path} holds {'an unfinished' if present.state == 'writing' else 'a'} store of other content "
            f"(fingerprint {present.fingerprint[:12]}, wanted {manifest.fingerprint[:12]}); choose another --out, or "
            "pass --force to replace it"
        )
    if present is None:
        if path.exists() and not _is_only_scaffold(path):
            raise StoreClashError(f"{path} exists and is not a token store; choose another --out or remove it")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot create {path}: {error.strerror}; choose another --out") from error
        write_document(path, "", manifest.as_attributes())
        present = manifest
    if present.state == "complete":
        return present
    for parent in PARENTS:
        if not (path / parent / "zarr.json").exists():
            write_document(path, parent, {})
    write_group(path, "graph", graph.arrays())
    write_group(path, "tokens/index", {"block_ptr": plan_blocks(graph.num_nodes, manifest.block_size, graph.graph_ptr)})
    return present


def has_group(path: Path, group: str) -> bool:
    return (path / group / "zarr.json").exists()


def missing_groups(path: Path, manifest: Manifest) -> Iterator[str]:
    """The groups still to be written: those that are not blocks first."""
    yield from (group for group in fixed_groups(manifest) if not has_group(path, group))
    yield from (block_group(b) for b in range(manifest.blocks) if not has_group(path, block_group(b)))


def write_group(
    path: Path,
    group: str,
    arrays: Mapping[str, Array],
    facts: Mapping[str, Scalar] | None = None,
    *,
    replace: bool = False,
) -> None:
    """Write one of the groups that are not blocks (`graph`, `encodings/laplacian`, ...), unless it is there."""
    if has_group(path, group) and not replace:
        return
    manifest = manifest_in(open_storage(path), unfinished=True)
    groups = fixed_groups(manifest)
    if group not in groups:
        raise StoreError(f"'{group}' is not part of this store's plan; it has {', '.join(groups)}")
    _check_arrays(group, arrays, groups[group])
    write_arrays(path, group, arrays, {FACTS: dict(facts or {})}, manifest.codec, replace=replace)


def write_block(path: Path, number: int, block: BlockArrays, *, replace: bool = False) -> None:
    """Write one block of tokens, unless it is there. Safe from many processes at once, and when killed."""
    if has_group(path, block_group(number)) and not replace:
        return
    storage = LocalFolder(path)
    manifest = manifest_in(storage, unfinished=True)
    spec = fixed_groups(manifest)["tokens/index"]["block_ptr"]
    borders = open_array(storage, "tokens/index/block_ptr", spec, manifest.codec).values
    first, end = (int(v) for v in borders[number : number + 2])
    facts = block.facts
    if (facts.first_node, facts.nodes) != (first, end - first):
        raise StoreError(f"block {number} holds nodes {first}..{end - 1}; was given {facts}")
    _check_arrays(f"block {number}", block.arrays(), block_specs(manifest, facts))
    write_arrays(path, block_group(number), block.arrays(), {FACTS: asdict(facts)}, manifest.codec, replace=replace)


def finalise_store(path: str | Path) -> Manifest:
    """Complete the manifest once every group and block is there; readers accept the store from then on."""
    path = Path(path)
    storage = open_storage(path)
    manifest = manifest_in(storage, unfinished=True)
    if manifest.state == "complete":
        return manifest
    missing = list(missing_groups(path, manifest))
    if missing:
        raise StoreError(f"{path} cannot be completed: {missing[0]} and {len(missing) - 1} more are missing")
    digests, facts = collect_digests(storage, manifest)
    manifest = replace(
        manifest,
        state="complete",
        digests=digests,
        token_nodes=sum(f.token_nodes for f in facts),
        token_edges=sum(f.token_edges for f in facts),
    )
    write_document(path, "", manifest.as_attributes())
    return manifest


def is_same_plan(present: Manifest, wanted: Manifest) -> bool:
    """Whether a store that is there is this plan, finished or not. Packing counts while it is unfinished."""
    if present.state == "complete":
        return present.fingerprint == wanted.fingerprint and present.dataset == wanted.dataset
    return present == replace(wanted, state="writing", digests={}, token_nodes=0, token_edges=0)


def _is_only_scaffold(path: Path) -> bool:
    """Whether a folder is empty but for what a writer killed in its first moment leaves."""
    return path.is_dir() and all(child.name == WIP for child in path.iterdir())


def _check_arrays(group: str, arrays: Mapping[str, Array], specs: Mapping[str, ArraySpec]) -> None:
    given = {name: ArraySpec(array.dtype, array.shape) for name, array in arrays.items()}
    if given != dict(specs):
        wrong = sorted(name for name in given.keys() | specs.keys() if given.get(name) != specs.get(name))
        raise StoreError(f"{group}: {wrong[0]} is {given.get(wrong[0])}, the format says {specs.get(wrong[0])}")
