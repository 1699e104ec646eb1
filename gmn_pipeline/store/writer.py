"""Writes a token store: group by group, each whole or absent, one writer at a time, resumable at any moment."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gmn_pipeline.disk.lock import release_lock, take_lock
from gmn_pipeline.errors import StoreBusyError, StoreClashError, StoreError
from gmn_pipeline.graph import Graph
from gmn_pipeline.store.blocks import plan_blocks
from gmn_pipeline.store.group_files import CHECKSUMS, GroupWriter, open_array, read_attributes, read_block_facts
from gmn_pipeline.store.manifest import ATTRIBUTE, GraphFacts, Manifest, Scalar, digest_of
from gmn_pipeline.store.schema import ArraySpec, BlockFacts, block_name, block_specs, fixed_groups
from gmn_pipeline.store.token_settings import Codec, TokenSettings
from gmn_pipeline.types import Array, IntArray

PARENTS = ("encodings", "orderings", "tokens")


@dataclass(frozen=True)
class TokenBlock:
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


class StoreWriter:
    """Writes one store. Use as a context manager; leaving it without `finalise` keeps what is whole for a resume.

    with StoreWriter.open(path, manifest, graph) as writer:
        for number in writer.missing_blocks():
            writer.write_block(number, block)
        writer.finalise()
    """

    def __init__(self, path: Path, manifest: Manifest, block_ptr: IntArray, lock: FileLock) -> None:
        self.path, self.manifest, self.block_ptr = path, manifest, block_ptr
        self._lock = lock
        self._files = GroupWriter(path, manifest.codec)

    @classmethod
    def open(
        cls,
        path: str | Path,
        manifest: Manifest,
        graph: Graph,
        *,
        force: bool = False,
        wait: float = 0.0,
        on_wait: Callable[[], None] | None = None,
    ) -> "StoreWriter":
        """Create the store, or go on with an unfinished one of the same content.

        force: remove a store of other content, finished or not. wait: seconds to wait for another writer (-1: as long
        as it takes); `on_wait` is called once when waiting begins. Raises StoreBusyError, StoreClashError, StoreError.
        """
        path = Path(path)
        lock = _lock_store(path, wait, on_wait)
        try:
            block_ptr = plan_blocks(graph.num_nodes, manifest.block_size, graph.graph_ptr)
            writer = cls(path, manifest, block_ptr, lock)
            writer._prepare(graph, force)
        except BaseException:
            release_lock(lock)
            raise
        return writer

    def _prepare(self, graph: Graph, force: bool) -> None:
        found = manifest_at(self.path)
        if found is not None and not _same_plan(found, self.manifest):
            if not force:
                raise StoreClashError(
                    f"{self.path} holds {'an unfinished' if found.state == 'writing' else 'a'} store of other content "
                    f"(fingerprint {found.fingerprint[:12]}, wanted {self.manifest.fingerprint[:12]}); choose another "
                    "--out, or pass --force to replace it"
                )
            shutil.rmtree(self.path)
            found = None
        if found is None:
            if self.path.exists() and not _is_only_scaffold(self.path):
                raise StoreClashError(f"{self.path} exists and is not a token store; choose another --out or remove it")
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"cannot create {self.path}: {error.strerror}; choose another --out") from error
            self._files.write_document("", self.manifest.as_attributes())
        else:
            self.manifest = found
        if self.is_complete:
            return
        shutil.rmtree(self._files.aside, ignore_errors=True)
        for parent in PARENTS:
            if not (self.path / parent / "zarr.json").exists():
                self._files.write_document(parent, {})
        self.write_group("graph", graph.arrays())
        self.write_group("tokens/index", {"block_ptr": self.block_ptr})

    @property
    def is_complete(self) -> bool:
        return self.manifest.state == "complete"

    def has_group(self, group: str) -> bool:
        return (self.path / group / "zarr.json").exists()

    def write_group(self, group: str, arrays: Mapping[str, Array], facts: Mapping[str, Scalar] | None = None) -> None:
        """Write one of the groups that are not blocks (`graph`, `encodings/laplacian`, ...), unless it is there."""
        if self.has_group(group):
            return
        groups = fixed_groups(self.manifest)
        if group not in groups:
            raise StoreError(f"'{group}' is not part of this store's plan; it has {', '.join(groups)}")
        _check_arrays(group, arrays, groups[group])
        self._files.write(group, arrays, {ATTRIBUTE: dict(facts or {})})

    def missing_blocks(self) -> list[int]:
        """The blocks still to be written, ascending."""
        return [b for b in range(self.manifest.blocks) if not self.has_group(f"tokens/{block_name(b)}")]

    def write_block(self, number: int, block: TokenBlock) -> None:
        """Write one block of tokens."""
        first, end = (int(v) for v in self.block_ptr[number : number + 2])
        facts = block.facts
        if (facts.first_node, facts.nodes) != (first, end - first):
            raise StoreError(f"block {number} holds nodes {first}..{end - 1}; was given {facts}")
        _check_arrays(f"block {number}", block.arrays(), block_specs(self.manifest, facts))
        self._files.write(f"tokens/{block_name(number)}", block.arrays(), {ATTRIBUTE: asdict(facts)})

    def finalise(self) -> Manifest:
        """Complete the manifest once every group and block is there; readers accept the store from then on."""
        if self.is_complete:
            return self.manifest
        missing = [group for group in fixed_groups(self.manifest) if not self.has_group(group)]
        missing += [f"tokens/{block_name(b)}" for b in self.missing_blocks()]
        if missing:
            raise StoreError(f"{self.path} cannot be completed: {missing[0]} and {len(missing) - 1} more are missing")
        digests, facts = collect_digests(self.path, self.manifest)
        self.manifest = replace(
            self.manifest,
            state="complete",
            digests=digests,
            token_nodes=sum(f.token_nodes for f in facts),
            token_edges=sum(f.token_edges for f in facts),
        )
        shutil.rmtree(self._files.aside, ignore_errors=True)
        self._files.write_document("", self.manifest.as_attributes())
        shutil.rmtree(self._files.aside, ignore_errors=True)
        return self.manifest

    def read_group(self, group: str) -> dict[str, Array]:
        """A group already written, for phases that build on it after a resume."""
        specs = fixed_groups(self.manifest)[group]
        return {n: open_array(self.path / group / n, s, self.manifest.codec).values for n, s in specs.items()}

    def close(self) -> None:
        release_lock(self._lock)

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def collect_digests(path: Path, manifest: Manifest) -> tuple[dict[str, str], list[BlockFacts]]:
    """A digest per group from the checksums it carries, and the facts of every block."""
    digests = {group: group_digest(read_attributes(path / group)) for group in fixed_groups(manifest)}
    blocks, facts = [], []
    for number in range(manifest.blocks):
        folder = path / "tokens" / block_name(number)
        blocks.append(group_digest(read_attributes(folder)))
        facts.append(read_block_facts(folder))
    digests["tokens"] = digest_of(blocks)
    return digests, facts


def group_digest(attributes: Mapping[str, Any]) -> str:
    """Digest of all attributes of a group: its arrays' checksums and its facts."""
    return digest_of({CHECKSUMS: attributes.get(CHECKSUMS), ATTRIBUTE: attributes.get(ATTRIBUTE)})


def manifest_at(path: Path) -> Manifest | None:
    """The manifest of the store at `path`, finished or not; None where there is none yet."""
    if not (path / "zarr.json").exists():
        return None
    return Manifest.from_attributes(read_attributes(path), str(path))


def _lock_store(path: Path, wait: float, on_wait: Callable[[], None] | None) -> FileLock:
    try:
        return take_lock(path, wait, on_wait)
    except Timeout:
        raise StoreBusyError(
            f"another process is writing {path}; wait for it to end and run again, or choose another --out"
        ) from None
    except OSError as error:
        raise StoreError(f"cannot write beside {path}: {error.strerror}; choose another --out") from error


def _same_plan(found: Manifest, wanted: Manifest) -> bool:
    """Whether an existing store is this plan, finished or not. Packing counts while it is unfinished."""
    if found.state == "complete":
        return found.fingerprint == wanted.fingerprint and found.dataset == wanted.dataset
    return found == replace(wanted, state="writing", digests={}, token_nodes=0, token_edges=0)


def _is_only_scaffold(path: Path) -> bool:
    """Whether a folder is empty but for what a writer killed in its first moment leaves."""
    return path.is_dir() and all(child.name == ".wip" for child in path.iterdir())


def _check_arrays(group: str, arrays: Mapping[str, Array], specs: Mapping[str, ArraySpec]) -> None:
    found = {name: ArraySpec(array.dtype, array.shape) for name, array in arrays.items()}
    if found != dict(specs):
        wrong = sorted(name for name in found.keys() | specs.keys() if found.get(name) != specs.get(name))
        raise StoreError(f"{group}: {wrong[0]} is {found.get(wrong[0])}, the format says {specs.get(wrong[0])}")
