"""Writes a whole store from one process, one writer at a time, on the verbs of `writing`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from gmn_pipeline.disk.lock import is_locked, release_lock, remove_stale_lock, take_lock
from gmn_pipeline.errors import StoreBusyError, StoreClashError, StoreError
from gmn_pipeline.graph import Graph
from gmn_pipeline.place import StorePlace, StoreUrl, as_place
from gmn_pipeline.store.files.group_writer import clear_workplace
from gmn_pipeline.store.files.places import has_root
from gmn_pipeline.store.format.blocks import plan_blocks
from gmn_pipeline.store.format.manifest import Manifest, Scalar
from gmn_pipeline.store.format.schema import block_group
from gmn_pipeline.store.writing.replace_store import next_generation, switch_generation
from gmn_pipeline.store.writing.verbs import (
    BlockArrays,
    create_store,
    finalise_store,
    has_group,
    missing_groups,
    plan_manifest,
    write_block,
    write_group,
)
from gmn_pipeline.types import Array

__all__ = ["BlockArrays", "StoreWriter", "plan_manifest"]


class StoreWriter:
    """Writes one store. Use as a context manager; leaving it without `finalise` keeps what is whole for a resume.

    with StoreWriter.open(path, manifest, graph) as writer:
        for number in writer.missing_blocks():
            writer.write_block(number, block)
        writer.finalise()
    """

    def __init__(
        self, path: StorePlace, place: StorePlace, manifest: Manifest, graph: Graph, lock: FileLock | None
    ) -> None:
        self.path, self._place, self._lock = path, place, lock
        self.block_ptr = plan_blocks(graph.num_nodes, manifest.block_size, graph.graph_ptr)
        self.manifest = create_store(place, manifest, graph)

    @classmethod
    def open(
        cls,
        path: str | StorePlace,
        manifest: Manifest,
        graph: Graph,
        *,
        force: bool = False,
        wait: float = 0.0,
        on_wait: Callable[[], None] | None = None,
    ) -> "StoreWriter":
        """Create the store, or go on with an unfinished one of the same content.

        force: write it anew beside the store that is there, and take its place in `finalise`. wait: seconds to wait for
        another writer (-1: as long as it takes); `on_wait` is called once when waiting begins. An object store knows
        no lock: a second writer does the same work, and finds its own bytes there. Raises StoreBusyError,
        StoreClashError, StoreError.
        """
        path = as_place(path)
        if isinstance(path, StoreUrl):
            if force and has_root(path):
                raise StoreClashError(
                    f"{path} is in an object store, where --force cannot swap stores; choose another --out"
                )
            return cls(path, path, manifest, graph, None)
        lock = lock_store(path, wait, on_wait)
        try:
            place = next_generation(path, manifest) if force else path
            return cls(path, place, manifest, graph, lock)
        except BaseException:
            release_lock(lock)
            raise

    @property
    def place(self) -> StorePlace:
        """Where the files go until `finalise`: beside `path` where a finished store is to be replaced."""
        return self._place

    @property
    def is_complete(self) -> bool:
        return self.manifest.state == "complete"

    def has_group(self, group: str) -> bool:
        return has_group(self._place, group)

    def write_group(self, group: str, arrays: Mapping[str, Array], facts: Mapping[str, Scalar] | None = None) -> None:
        """Write one of the groups that are not blocks (`encodings/laplacian`, ...), unless it is there."""
        write_group(self._place, group, arrays, facts)

    def missing_blocks(self) -> list[int]:
        """The blocks still to be written, ascending."""
        missing = set(missing_groups(self._place, self.manifest))
        return [b for b in range(self.manifest.blocks) if block_group(b) in missing]

    def write_block(self, number: int, block: BlockArrays) -> None:
        """Write one block of tokens, unless it is there."""
        write_block(self._place, number, block)

    def finalise(self) -> Manifest:
        """Complete the manifest once every group and block is there; readers accept the store from then on."""
        self.manifest = finalise_store(self._place)
        if isinstance(self.path, Path) and isinstance(self._place, Path) and self._place != self.path:
            switch_generation(self.path, self._place)
            self._place = self.path
        return self.manifest

    def close(self) -> None:
        if self._lock is not None:
            release_lock(self._lock)

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def clear_leftovers(path: Path) -> None:
    """Remove what a writer of this finished store left when it was killed at its end; one at work keeps its own."""
    clear_workplace(path)
    remove_stale_lock(path)


def refuse_busy(path: StorePlace) -> None:
    """Raise StoreBusyError if another process writes the store now; object stores have no lock."""
    if isinstance(path, Path) and is_locked(path):
        raise _busy(path)


def lock_store(path: Path, wait: float = 0.0, on_wait: Callable[[], None] | None = None) -> FileLock:
    """Become the only process that writes the whole of a store. Raises StoreBusyError, StoreError."""
    try:
        return take_lock(path, wait, on_wait)
    except Timeout:
        raise _busy(path) from None
    except OSError as error:
        raise StoreError(f"cannot write beside {path}: {error.strerror}; choose another --out") from error


def _busy(path: Path) -> StoreBusyError:
    return StoreBusyError(
        f"another process is writing {path}; wait for it to end and run again, or choose another --out"
    )
