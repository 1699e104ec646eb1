"""Stores that are hostile, replaced or cut off under a reader: one clear error, no crash, no hang, no large memory."""

import errno
import io
import mmap
import os
import shutil
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from numcodecs import zstd

from gmn_pipeline import StoreWriter, TokenSettings, TokenStore
from gmn_pipeline.errors import ConfigError, StoreCorruptError, StoreError
from gmn_pipeline.store.checking.byte_check import ByteCheck
from gmn_pipeline.store.checking.quick_check import quick_check
from gmn_pipeline.store.writing.verbs import plan_manifest
from tests.forgery import chunk_of, edit_manifest, poke, seal
from tests.stores import ring_graph, write_store

ROOT = Path(__file__).parents[3]
SETTINGS = TokenSettings(2, 2, 1)


MADE: dict[tuple[int, str], dict[Path, bytes]] = {}


def make(path: Path, seed: int = 0, codec: str = "raw") -> Path:
    """A small store. It is written once; copies need no flush to disk."""
    if (seed, codec) not in MADE:
        tokens = TokenSettings(2, 2, 1, seed=seed)
        write_store(path, ring_graph(), tokens, block_size=16, codec=codec, orderings=())
        MADE[seed, codec] = {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}
        return path
    for name, content in MADE[seed, codec].items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def read_all(store: TokenStore) -> list[list[int]]:
    _ = store.graph
    return [batch.nodes.tolist() for batch in store.view().blocks()]


# Sizes are bounded before anything is read


@pytest.mark.parametrize(
    "changes",
    [
        {"blocks": 10**9, "graph.nodes": 10**9},
        {"blocks": 10**9},
        {"block_size": 0},
        {"graph.nodes": 10**30},
        {"graph.slots": -1},
        {"tokens.s": 10**12},
    ],
)
def test_impossible_counts_are_refused_at_once(tmp_path: Path, changes: dict) -> None:
    store = make(tmp_path / "s.zarr")
    edit_manifest(store, **changes)
    tracemalloc.start()
    begun = time.process_time()
    try:
        for check in ("none", "full"):
            with pytest.raises((StoreError, ConfigError)):
                read_all(TokenStore.open(store, check=check))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert time.process_time() - begun < 10


CHANGE = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "device": lambda p: p.symlink_to("/dev/zero"),
    "sparse": lambda p: (p.touch(), os.truncate(p, 1 << 40)),
}


@pytest.mark.parametrize("kind", CHANGE)
@pytest.mark.parametrize("codec", ["raw", "zstd"])
@pytest.mark.parametrize("name", ["zarr.json", "graph/zarr.json", "tokens/b00000/nodes/zarr.json", "chunk"])
def test_only_plain_files_of_the_right_size_are_read(tmp_path: Path, kind: str, codec: str, name: str) -> None:
    store = make(tmp_path / "s.zarr", codec=codec)
    file = chunk_of(store / "tokens/b00001/walks") if name == "chunk" else store / name
    file.unlink()
    CHANGE[kind](file)
    tracemalloc.start()
    begun = time.process_time()
    try:
        for use in (lambda: read_all(TokenStore.open(store)), lambda: TokenStore.open(store).verify()):
            with pytest.raises(StoreError):
                use()
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert time.process_time() - begun < 10


def test_a_chunk_that_unpacks_to_very_much(tmp_path: Path) -> None:
    store = make(tmp_path / "s.zarr", codec="zstd")
    chunk_of(store / "tokens/b00001/walks").write_bytes(zstd.compress(np.zeros(20_000_000, np.uint8)))
    tracemalloc.start()
    try:
        with pytest.raises(StoreCorruptError, match="unpacks to 20000000 bytes"):
            read_all(TokenStore.open(store))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_block_pointer_that_wraps_around(tmp_path: Path) -> None:
    """Differences of these neighbours are positive in 64 bits; the pointer goes down all the same."""
    store = make(tmp_path / "s.zarr")
    poke(store / "tokens/index/block_ptr", "<i8", slice(None), [0, 2**63 - 1, -2, 40])
    seal_index(store)
    with pytest.raises(StoreCorruptError, match="block_ptr"):
        TokenStore.open(store)


def seal_index(store: Path) -> None:
    """As `seal`, for a block_ptr that no reader would accept."""
    seal(store, "tokens/index")


# A reader stays on one store


def test_parts_of_another_store_are_refused_when_first_used(tmp_path: Path) -> None:
    for part in ("graph", "tokens/b00001", "tokens/index"):
        mine, other = make(tmp_path / "mine.zarr"), make(tmp_path / "other.zarr", seed=1)
        poke(other / "graph/y", "<i8", 3, 2)
        seal(other, "graph")
        poke(other / "tokens/index/block_ptr", "<i8", 1, 17)
        seal(other, "tokens/index")
        shutil.rmtree(mine / part)
        shutil.copytree(other / part, mine / part)
        with pytest.raises(StoreCorruptError, match="replaced"):
            read_all(TokenStore.open(mine))
        with pytest.raises(StoreCorruptError, match="replaced"):
            quick_check(mine)
        shutil.rmtree(mine)
        shutil.rmtree(other)


def replace_by_force(path: Path, seed: int) -> None:
    graph, tokens = ring_graph(), TokenSettings(2, 2, 1, seed=seed)
    other = make(path.with_name("new.zarr"), seed)
    with StoreWriter.open(path, plan_manifest(graph, tokens, block_size=16), graph, force=True) as writer:
        from concurrent.futures import ThreadPoolExecutor

        from gmn_prep.tokens.tokenizer import Tokenizer

        tokenizer = Tokenizer.of(graph, tokens)
        with ThreadPoolExecutor(1) as pool:
            for number in writer.missing_blocks():
                first, last = writer.block_ptr[number : number + 2]
                writer.write_block(number, tokenizer.block(int(first), int(last), pool))
        writer.finalise()
    assert {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()} == {
        p.relative_to(other): p.read_bytes() for p in other.rglob("*") if p.is_file()
    }
    shutil.rmtree(other)


def test_an_open_reader_stays_on_its_store_when_force_replaces_it(tmp_path: Path) -> None:
    path = make(tmp_path / "s.zarr")
    wanted = read_all(TokenStore.open(path))
    reader = TokenStore.open(path)
    first = reader.view().gather(np.arange(16)).nodes.tolist()
    replace_by_force(path, seed=1)
    assert [first, *read_all(reader)[1:]] == wanted
    reader.verify()
    assert read_all(TokenStore.open(path)) != wanted
    assert len(list(tmp_path.glob("s.zarr.old-*"))) == 1  # kept for the reader
    del reader
    replace_by_force(path, seed=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.zarr"]


def test_a_forced_write_that_was_interrupted_leaves_the_old_store_and_goes_on(tmp_path: Path) -> None:
    path = make(tmp_path / "s.zarr")
    wanted = read_all(TokenStore.open(path))
    graph, tokens = ring_graph(), TokenSettings(2, 2, 1, seed=1)
    manifest = plan_manifest(graph, tokens, block_size=16)
    StoreWriter.open(path, manifest, graph, force=True).close()
    assert read_all(TokenStore.open(path)) == wanted
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.zarr", "s.zarr.next"]
    kept = (tmp_path / "s.zarr.next" / "graph" / "zarr.json").stat().st_ino
    StoreWriter.open(path, manifest, graph, force=True).close()
    assert (tmp_path / "s.zarr.next" / "graph" / "zarr.json").stat().st_ino == kept
    replace_by_force(path, seed=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.zarr"]


def test_a_file_system_without_locks_serves_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network file systems may refuse to lock a folder; nothing may be left behind there either."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    from gmn_pipeline.store.files import group_writer, storage
    from gmn_pipeline.store.writing import replace_store

    for module in (group_writer, replace_store, storage):
        monkeypatch.setattr(module.fcntl, "flock", refuse)
    monkeypatch.setattr("gmn_pipeline.store.writing.writer.take_lock", lambda *_: FileLock(tmp_path / "unused.lock"))
    path = write_store(tmp_path / "s.zarr", ring_graph(), SETTINGS, orderings=()).path
    TokenStore.open(path).verify()
    replace_by_force(path, seed=1)
    TokenStore.open(path).verify()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.zarr"]


def test_a_removed_store_is_told(tmp_path: Path) -> None:
    path = make(tmp_path / "s.zarr")
    reader = TokenStore.open(path)
    path.rename(tmp_path / "moved.zarr")
    assert reader.view().gather([0]).node_ids.size == 1  # held open: a new name does not matter
    shutil.rmtree(tmp_path / "moved.zarr")
    with pytest.raises(StoreError, match="replaced or removed while it was read"):
        reader.view().gather([39])


# Checksums while reading


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_check_full_and_sampled_find_a_flipped_bit(tmp_path: Path, codec: str) -> None:
    path = make(tmp_path / "s.zarr", codec=codec)
    for check in ("full", "sampled"):
        store = TokenStore.open(path, check=check)
        wanted = read_all(store)
        store.finish_check()
    chunk = chunk_of(path / "tokens/b00001/walks")
    content = bytearray(chunk.read_bytes())
    place = content.index(1) if codec == "raw" else -1  # a step of a walk that stays possible, or zstd's checksum
    content[place] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(StoreCorruptError, match="b00001/walks was changed"):
        TokenStore.open(path, check="full")
    if codec == "raw":  # zstd refuses to decode it anyway
        assert read_all(TokenStore.open(path)) == wanted
        store = TokenStore.open(path, check="sampled")
        store.view().gather([0])
        store.finish_check()
        store.view().gather([20], parts=())
        with pytest.raises(StoreCorruptError, match="b00001/walks was changed"):
            store.finish_check()
        with pytest.raises(StoreCorruptError, match="b00001/walks was changed"):
            store.view().gather([0])


def test_check_sampled_looks_at_the_graph_too(tmp_path: Path) -> None:
    path = make(tmp_path / "s.zarr")
    poke(path / "graph/x", "<f4", 7, 0.25)
    store = TokenStore.open(path, check="sampled")
    store.finish_check()
    assert store.graph.x is not None
    with pytest.raises(StoreCorruptError, match="graph/x was changed"):
        store.finish_check()


def test_a_disk_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by the check in the background: a part that could not be read does not pass for a good one."""
    store = TokenStore.open(make(tmp_path / "s.zarr"), check="sampled")
    store.finish_check()
    original, block = os.fdopen, store.storage._open("tokens/b00001/zarr.json")[0]  # type: ignore[attr-defined]
    inode = os.fstat(block).st_ino
    os.close(block)

    class Broken(io.RawIOBase):
        def read(self, _size: int = -1) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    def open_file(descriptor: int, *arguments: Any, **options: Any) -> Any:
        broken = os.fstat(descriptor).st_ino == inode
        return Broken() if broken else original(descriptor, *arguments, **options)

    store.view().gather([0, 20])
    store.finish_check()
    monkeypatch.setattr(os, "fdopen", open_file)
    again = TokenStore.open(store.path, check="sampled")
    with pytest.raises(StoreError, match=r"b00001/zarr\.json cannot be read: Input/output error"):
        again.view().gather([20])
    with pytest.raises(StoreError, match=r"b00001/zarr\.json cannot be read: Input/output error"):
        again.finish_check()


def test_a_check_that_fails_in_any_way_is_raised() -> None:
    check = ByteCheck()

    def fail(_part: object) -> None:
        raise MemoryError("none is left")

    check.first_use("graph", fail)
    with pytest.raises(MemoryError):
        check.finish()


CUT = textwrap.dedent(
    """
    import os, sys
    import numpy as np
    from pathlib import Path
    from gmn_pipeline import TokenStore
    from gmn_pipeline.errors import StoreCorruptError
    store = TokenStore.open(sys.argv[1])
    store.view().gather(np.arange(400))
    os.truncate(Path(sys.argv[1]) / "tokens/b00000/nodes/c/0", 0)
    try:
        store.view().gather(np.arange(400))
    except StoreCorruptError as error:
        print(error)
    """
)


def test_a_chunk_cut_off_under_a_reader_is_told(tmp_path: Path) -> None:
    """To touch a mapped page behind the file's end kills the process: lengths are compared before each use."""
    path = write_store(tmp_path / "s.zarr", ring_graph(400, 300), SETTINGS, block_size=400, orderings=()).path
    assert (path / "tokens/b00000/nodes/c/0").stat().st_size > 2 * mmap.PAGESIZE
    done = subprocess.run([sys.executable, "-c", CUT, str(path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nodes was cut off while it was read" in done.stdout
