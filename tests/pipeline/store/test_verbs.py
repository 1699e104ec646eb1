"""The verbs of writing: many processes at once, killed or not, make the same bytes; and the storage seam."""

import mmap
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.errors import StoreClashError, StoreCorruptError, StoreUnfinishedError
from gmn_pipeline.store.files.manifest_file import manifest_in
from gmn_pipeline.store.writing.verbs import create_store, finalise_store, missing_groups, plan_manifest, write_block
from gmn_prep.tokens.tokenizer import Tokenizer
from tests.end_to_end.commands import Command, start, tree
from tests.stores import ring_graph, write_store
from tests.waiting import wait_until

SETTINGS = TokenSettings(3, 2, 2)


def start_worker(path: Path, seed: int) -> Command:
    return start("tests.pipeline.store.processes:write_blocks", path, seed, cwd=path.parent, stderr=subprocess.PIPE)


def test_workers_without_a_lock_make_the_bytes_of_one_writer(tmp_path: Path) -> None:
    graph = ring_graph(400, 300)
    wanted = tree(write_store(tmp_path / "w.zarr", graph, SETTINGS, block_size=10, orderings=()).path)
    path = tmp_path / "s.zarr"
    manifest = plan_manifest(graph, SETTINGS, block_size=10)
    for _ in range(2):  # a second coordinator changes nothing
        create_store(path, manifest, graph)
    with start_worker(path, 0) as killed:
        wait_until(lambda: any((path / "tokens").glob("b*")))
        killed.send_signal(signal.SIGKILL)
    with ExitStack() as stack:
        workers = [stack.enter_context(start_worker(path, seed)) for seed in (1, 2, 3)]
        errors = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], errors
    assert tree(path) == wanted
    assert sorted(p.name for p in path.iterdir()) == ["encodings", "graph", "orderings", "tokens", "zarr.json"]


def test_an_unfinished_store_serves_its_graph_to_workers_only(tmp_path: Path) -> None:
    graph, path = ring_graph(), tmp_path / "s.zarr"
    create_store(path, plan_manifest(graph, SETTINGS, block_size=16), graph)
    with pytest.raises(StoreUnfinishedError):
        TokenStore.open(path)
    store = TokenStore.open(path, unfinished=True)
    np.testing.assert_array_equal(store.graph.indices, graph.indices)
    assert store.block_ptr.tolist() == [0, 16, 32, 40]
    assert list(missing_groups(path, store.manifest)) == ["tokens/b00000", "tokens/b00001", "tokens/b00002"]
    with pytest.raises(StoreClashError, match="other content"):
        create_store(path, plan_manifest(graph, TokenSettings(1, 1, 1), block_size=16), graph)
    tokenizer = Tokenizer.of(store.graph, store.settings)
    with ThreadPoolExecutor(1) as pool:
        for number in (2, 0, 1, 1):
            first, last = store.block_ptr[number : number + 2]
            write_block(path, number, tokenizer.block(int(first), int(last), pool))
    assert finalise_store(path) == finalise_store(path) == TokenStore.open(path).manifest
    TokenStore.open(path).verify()


class InMemory:
    """A second kind of storage, as small as the protocol allows."""

    room = None

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def __str__(self) -> str:
        return "memory"

    def read(self, name: str, most: int) -> bytes:
        if name not in self.files:
            raise StoreCorruptError(f"memory/{name} is missing")
        return self.files[name][:most]

    def map(self, name: str, size: int) -> mmap.mmap:
        with tempfile.TemporaryFile() as file:
            file.write(self.read(name, size))
            file.flush()
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)

    def list(self, folder: str) -> list[str]:
        prefix = f"{folder}/".lstrip("/")
        inside = [name.removeprefix(prefix) for name in self.files if name.startswith(prefix)]
        return sorted({name.split("/")[0] + "/" * ("/" in name) for name in inside})

    def exists(self, name: str) -> bool:
        return name in self.files

    def expect(self, groups: Iterable[str]) -> None:
        pass


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_another_storage_is_one_class(tmp_path: Path, codec: str) -> None:
    local = write_store(tmp_path / "s.zarr", ring_graph(), SETTINGS, codec=codec)
    storage = InMemory(tree(local.path))
    store = TokenStore(Path("memory"), storage, manifest_in(storage), 1 << 30, 1 << 29)
    store.verify()
    ids = np.arange(40)[::-1]
    np.testing.assert_array_equal(store.view().gather(ids).nodes, local.view().gather(ids).nodes)
