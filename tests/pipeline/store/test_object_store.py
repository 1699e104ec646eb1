"""Stores in an object store: the same bytes, whatever the network does; read through a bounded cache."""

import gc
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from gmn_pipeline import TokenSettings, TokenStore
from gmn_pipeline.errors import ConfigError, StoreClashError, StoreCorruptError, StoreError
from gmn_pipeline.place import StoreUrl, as_place
from gmn_pipeline.store.files.places import objects_at
from gmn_pipeline.store.objects import client
from gmn_pipeline.store.writing.copy_store import copy_store
from tests.object_server import FaultyProxy
from tests.stores import ring_graph, write_store
from tests.waiting import wait_until

SETTINGS = TokenSettings(3, 2, 2)


def tree(path: Path) -> dict[str, bytes]:
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def content_of(url: StoreUrl, name: str) -> bytes:
    return objects_at(url).get(name, 1 << 30)


def objects(url: StoreUrl) -> dict[str, bytes]:
    return {name: content_of(url, name) for name in objects_at(url).sizes("")}


@pytest.fixture
def url(request: pytest.FixtureRequest) -> StoreUrl:
    """A place of its own for each test."""
    return StoreUrl("bucket", f"{re.sub('[^a-z]', '-', request.node.name)}/s.zarr")


@pytest.fixture
def local(tmp_path: Path) -> TokenStore:
    return write_store(tmp_path / "local.zarr", ring_graph(edge_features=True), SETTINGS)


def chunks_fetched(s3: FaultyProxy) -> list[str]:
    return [path for path in s3.paths("GET") if "/c/" in path]


def test_places_are_paths_or_urls() -> None:
    assert as_place("data/x.zarr") == as_place(Path("data/x.zarr")) == Path("data/x.zarr")
    url = as_place("s3://bucket/a/x.zarr/")
    assert url == as_place(Path("s3://bucket/a/x.zarr")) == as_place(url) == StoreUrl("bucket", "a/x.zarr")
    assert (str(url), url.name, url.stem) == ("s3://bucket/a/x.zarr", "x.zarr", "x")
    for wrong in ("s3://", "s3://bucket", "gs://bucket/x.zarr", 5):
        with pytest.raises(ConfigError):
            as_place(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_the_bytes_are_those_of_a_folder_and_markers_come_last(
    s3: FaultyProxy, url: StoreUrl, tmp_path: Path, codec: str
) -> None:
    graph = ring_graph(edge_features=True)
    wanted = write_store(tmp_path / "local.zarr", graph, SETTINGS, codec=codec)
    store = write_store(url, graph, SETTINGS, codec=codec)
    assert objects(url) == tree(wanted.path)
    puts = [path.removeprefix(f"{url.prefix}/") for path in s3.paths("PUT")]
    assert puts[0] == puts[-1] == "zarr.json"  # writing, complete
    assert len(set(puts[:-1])) == len(puts) - 1  # no other object has two writers
    for number in range(3):
        of_block = [name for name in puts if name.startswith(f"tokens/b0000{number}/")]
        assert of_block[-1] == f"tokens/b0000{number}/zarr.json"
    store.verify()
    ids = np.arange(40)[::-1]
    np.testing.assert_array_equal(store.view().gather(ids).edges, wanted.view().gather(ids).edges)
    np.testing.assert_array_equal(store.graph.indices, graph.indices)


def test_a_second_reader_takes_blocks_from_the_cache(s3: FaultyProxy, url: StoreUrl, local: TokenStore) -> None:
    copy_store(local.path, url)
    read = TokenStore.open(url).view().gather(np.arange(20))
    assert any("b00001" in path for path in chunks_fetched(s3))
    s3.reset()
    again = TokenStore.open(url, check="sampled").view().gather(np.arange(20))
    np.testing.assert_array_equal(again.nodes, read.nodes)
    assert chunks_fetched(s3) == []
    TokenStore.open(url).view().gather([39])
    assert {path.split("/tokens/")[1][:6] for path in chunks_fetched(s3)} == {"b00002"}


@pytest.mark.usefixtures("s3")
def test_the_cache_is_bounded_and_what_is_mapped_stays_readable(
    url: StoreUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = write_store(tmp_path / "local.zarr", ring_graph(600, 300), SETTINGS, block_size=100)
    copy_store(local.path, url)
    limit = sum(map(len, tree(local.path).values())) // 2
    monkeypatch.setenv("GMN_CACHE_GB", str(limit / 1e9))
    store = TokenStore.open(url)
    first, still_mapped = store.block(0), sum(map(len, tree(local.path / "tokens" / "b00000").values()))
    for ids in np.arange(600).reshape(6, 100), np.arange(600).reshape(6, 100)[::-1]:
        for some in ids:
            wanted = local.view().gather(some)
            np.testing.assert_array_equal(store.view().gather(some).nodes, wanted.nodes)
            held = sum(len(content) for content in tree(tmp_path / "cache").values())
            assert held <= limit + still_mapped
    np.testing.assert_array_equal(first["nodes"], local.block(0)["nodes"])  # still mapped by us
    monkeypatch.setenv("GMN_CACHE_GB", "much")
    with pytest.raises(ConfigError, match="GMN_CACHE_GB is 'much'"):
        TokenStore.open(url)


@pytest.mark.parametrize("blocks", [16, 5, 4])
def test_a_batch_that_touches_all_blocks_keeps_the_bound_of_the_cache(
    s3: FaultyProxy, url: StoreUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    """Rows come in any order and twice, with chosen repeats; every block is fetched once, and the batch is the same.

    blocks: how many the cache holds, about.
    """
    graph = ring_graph(4800, 2400, edge_features=True)  # of smaller blocks, documents would be a fifth
    local = write_store(tmp_path / "local.zarr", graph, SETTINGS, block_size=200)
    write_store(url, graph, SETTINGS, block_size=200)
    limit = sum(map(len, tree(local.path / "tokens").values())) * blocks // 24  # mapped are half of them at most
    monkeypatch.setenv("GMN_CACHE_GB", str(limit / 1e9))
    ids = np.random.default_rng(0).permutation(np.append(np.arange(4800), [3, 700]))
    repeats = np.random.default_rng(1).integers(0, 2, (ids.size, 3, 2))
    store, s3.log = TokenStore.open(url), []
    held, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            sizes = [int(folder.name.split("-")[1]) for folder in (tmp_path / "cache").glob("*-*[0-9]")]
            held.append(sum(sizes))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        found, wanted = (one.view().gather(ids, repeats=repeats) for one in (store, local))
    finally:
        ended.set()
        watcher.join()
    for name in ("node_ids", "nodes", "node_ptr", "edges", "edge_ptr", "edge_slots", "walks"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
        assert getattr(found, name).dtype == getattr(wanted, name).dtype
    index = sum(map(len, tree(local.path / "tokens" / "index").values()))  # mapped as long as the store is open
    assert 0 < max(held) <= limit + index
    fetched = [path for path in chunks_fetched(s3) if "/walks/" in path]
    assert len(set(fetched)) == 24
    assert len(fetched) <= 28  # a block that was fetched ahead may go before it is read


@pytest.mark.usefixtures("s3")
def test_a_cache_that_one_block_overfills_shrinks_when_the_store_is_closed(
    url: StoreUrl, local: TokenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_store(local.path, url)
    monkeypatch.setenv("GMN_CACHE_GB", "1e-6")
    store = TokenStore.open(url)
    assert store.view().gather(np.arange(40)).nodes.size == local.view().gather(np.arange(40)).nodes.size
    del store
    gc.collect()
    assert sum(len(content) for content in tree(tmp_path / "cache").values()) <= 1000


def test_faults_of_the_network_are_waited_out(s3: FaultyProxy, url: StoreUrl, tmp_path: Path) -> None:
    graph = ring_graph(edge_features=True)
    local = write_store(tmp_path / "local.zarr", graph, SETTINGS)
    s3.busy = s3.cut_uploads = s3.cut_downloads = 3
    write_store(url, graph, SETTINGS)
    assert s3.busy == s3.cut_uploads == s3.cut_downloads == 0
    s3.busy = s3.cut_downloads = 3
    copy_store(url, tmp_path / "copy.zarr")
    assert s3.busy == s3.cut_downloads == 0
    assert objects(url) == tree(local.path) == tree(tmp_path / "copy.zarr")


def test_downloads_that_are_always_cut_are_told_as_such(
    s3: FaultyProxy, url: StoreUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "RETRIES", 2)  # or it takes half a minute
    s3.put(f"{url.prefix}/x", bytes(1000))
    s3.cut_downloads = 1000
    with pytest.raises(StoreError, match=r"the connection to .* was cut while x was read"):
        content_of(url, "x")


@pytest.mark.usefixtures("s3")
def test_a_damaged_object_is_found_past_the_cache(url: StoreUrl, local: TokenStore) -> None:
    copy_store(local.path, url)
    TokenStore.open(url).view().gather(np.arange(40))
    name = "tokens/b00001/nodes/c/0"
    content = bytearray(content_of(url, name))
    content[5] ^= 1
    objects_at(url).replace(name, bytes(content))
    TokenStore.open(url).verify()  # of what the cache holds
    with pytest.raises(StoreCorruptError, match="tokens/b00001/nodes was changed"):
        TokenStore.open(url, fresh=True).verify()
    with pytest.raises(StoreCorruptError, match="tokens/b00001/nodes was changed"):
        copy_store(url, local.path.with_name("copy.zarr"))


@pytest.mark.usefixtures("s3")
def test_a_damaged_file_of_the_cache_is_fetched_again(url: StoreUrl, local: TokenStore, tmp_path: Path) -> None:
    copy_store(local.path, url)
    TokenStore.open(url).view().gather([0, 39])
    for change in (lambda content: content[:9], lambda content: content[:9] + b"?" + content[10:]):
        files = list(tmp_path.glob("cache/*/nodes/c/0"))
        assert files
        for file in files:
            file.write_bytes(change(file.read_bytes()))
        read = TokenStore.open(url, check="full").view().gather([0, 39])
        np.testing.assert_array_equal(read.nodes, local.view().gather([0, 39]).nodes)


@pytest.mark.usefixtures("s3")
def test_two_writers_of_one_store(url: StoreUrl, tmp_path: Path) -> None:
    """At the same time, of the same content: the same bytes. Of other content: the second is told."""
    graph = ring_graph()
    wanted = tree(write_store(tmp_path / "local.zarr", graph, SETTINGS).path)
    errors: list[Exception] = []

    def write() -> None:
        try:
            write_store(url, graph, SETTINGS)
        except StoreError as error:
            errors.append(error)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert errors == []
    assert objects(url) == wanted
    with pytest.raises(StoreClashError, match="a store of other content"):
        write_store(url, graph, TokenSettings(1, 1, 1))


def test_what_someone_else_half_wrote_is_never_mixed_in(s3: FaultyProxy, url: StoreUrl, local: TokenStore) -> None:
    s3.put(f"{url.prefix}/tokens/b00001/nodes/c/0", b"other bytes")
    with pytest.raises(StoreClashError, match="holds tokens/ and is not a token store"):
        copy_store(local.path, url)
    s3.put(f"{url.prefix}/zarr.json", b"{}")
    with pytest.raises(StoreCorruptError, match=r"zarr\.json does not describe"):
        copy_store(local.path, url)
    other = StoreUrl(url.bucket, f"{url.prefix}-2")
    copy_store(local.path, other)
    objects_at(other).replace("zarr.json", content_of(other, "zarr.json").replace(b"complete", b"writing"))
    with pytest.raises(StoreCorruptError, match="does not match its checksum"):
        TokenStore.open(other)
    with pytest.raises(StoreClashError, match="written by someone else, with other content"):
        objects_at(other).create("tokens/b00001/nodes/c/0", b"mine")


def test_large_objects_go_in_parts(
    s3: FaultyProxy, url: StoreUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LARGEST_PUT", 6 << 20)
    monkeypatch.setattr(client, "PART", 5 << 20)
    content = bytes(range(256)) * (28 << 10)  # 7 MiB
    for _ in range(2):
        objects_at(url).create("x", content)
    assert content_of(url, "x") == content
    assert len(s3.paths("PUT")) == 2  # parts, not again
    objects_at(url).fetch("x", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == content


def test_expected_blocks_are_fetched_meanwhile(s3: FaultyProxy, url: StoreUrl, local: TokenStore) -> None:
    copy_store(local.path, url)
    store = TokenStore.open(url)
    store.expect(np.arange(40))
    wait_until(lambda: len({path.split("/c/")[0] for path in chunks_fetched(s3) if "/walks/" in path}) >= 3)
    wait_until(lambda: not store.storage._lanes)  # type: ignore[attr-defined]
    s3.reset()
    assert store.view().gather(np.arange(40)).nodes.size == local.view().gather(np.arange(40)).nodes.size
    assert chunks_fetched(s3) == []
