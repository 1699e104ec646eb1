"""What was written is what is read: for every codec, shape of graph and setting; whole, sliced, or by plain Zarr."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gmn_pipeline import Graph, TokenSettings, TokenStore
from gmn_pipeline.errors import ConfigError, StoreError, StoreUnfinishedError
from gmn_pipeline.store.format.schema import block_name, block_specs, fixed_groups
from gmn_pipeline.store.reading.view import TokenBatch
from tests.reference.tokens import sequence
from tests.stores import ring_graph, write_store
from tests.strategies import graphs, settings

codecs = st.sampled_from(["raw", "zstd"])


def assert_same_batch(one: TokenBatch, other: TokenBatch) -> None:
    for name in ("nodes", "node_ptr", "edges", "edge_ptr", "edge_slots", "walks"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.dtype == b.dtype, name
            np.testing.assert_array_equal(a, b, err_msg=name)


@hypothesis_settings(max_examples=40)
@given(graph=graphs(), mMs=settings(), codec=codecs, block_size=st.integers(1, 20), seed=st.integers(0, 5))
@example(graph=Graph.from_edges(np.zeros((0, 2), int), 0), mMs=(2, 2, 1), codec="raw", block_size=4, seed=0)
@example(graph=Graph.from_edges(np.zeros((0, 2), int), 1), mMs=(2, 2, 1), codec="zstd", block_size=4, seed=0)
@example(graph=ring_graph(9, 0), mMs=(0, 0, 0), codec="raw", block_size=4, seed=0)
def test_tokens_read_back_are_the_slow_twins(graph: Graph, mMs: tuple, codec: str, block_size: int, seed: int) -> None:
    wanted = TokenSettings(*mMs, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        store = write_store(Path(folder) / "s.zarr", graph, wanted, block_size=block_size, codec=codec, orderings=())
        for name, array in graph.arrays().items():
            np.testing.assert_array_equal(getattr(store.graph, name), array)
        assert store.graph.task == graph.task
        ids = np.random.default_rng(0).permutation(graph.num_nodes)
        batch = store.view().gather(ids)
        position = 0
        for i, node in enumerate(ids.tolist()):
            entry = 0
            for token in sequence(graph, wanted, node):
                assert batch.nodes[batch.node_ptr[position] : batch.node_ptr[position + 1]].tolist() == token.nodes
                assert batch.edges is not None
                assert batch.edge_ptr is not None
                edges = batch.edges[batch.edge_ptr[position] : batch.edge_ptr[position + 1]]
                assert [tuple(e) for e in edges.tolist()] == token.edges
                if batch.edge_slots is not None:
                    slots = batch.edge_slots[batch.edge_ptr[position] : batch.edge_ptr[position + 1]]
                    check_slots(graph, token.nodes, edges, slots)
                for walk in token.walks:
                    assert batch.walks is not None
                    assert batch.walks[i, entry : entry + len(walk)].tolist() == walk
                    entry += len(walk)
                position += 1
        store.verify()


def check_slots(graph: Graph, nodes: list[int], edges: np.ndarray, slots: np.ndarray) -> None:
    """Slot columns are the CSR slots of the edge and, undirected, of its reverse."""
    for (a, b), found in zip(edges.tolist(), slots.tolist(), strict=True):
        for (u, w), slot in zip([(nodes[a], nodes[b]), (nodes[b], nodes[a])], found, strict=False):
            assert graph.slot_sources[slot] == u
            assert graph.indices[slot] == w


@hypothesis_settings(max_examples=40)
@given(graph=graphs(), big=settings(), small=settings(), codec=codecs, data=st.data())
def test_a_view_is_bit_for_bit_a_store_made_at_its_settings(graph: Graph, big, small, codec, data) -> None:
    have = TokenSettings(*big)
    want = TokenSettings(*(min(a, b) for a, b in zip(big, small, strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        large = write_store(Path(folder) / "l.zarr", graph, have, block_size=7, codec=codec, orderings=())
        made = write_store(Path(folder) / "s.zarr", graph, want, block_size=3, orderings=())
        ids = np.array(data.draw(st.lists(st.integers(0, max(0, graph.num_nodes - 1)), max_size=9)), dtype=int)
        ids = ids[ids < graph.num_nodes]
        view = large.view(want.m, want.M, want.s)
        assert view.settings == made.settings
        assert_same_batch(view.gather(ids), made.view().gather(ids))


def test_chosen_repeats_are_those_stored(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.zarr", ring_graph(), TokenSettings(3, 2, 4))
    ids = np.array([5, 0, 39])
    whole = store.view().gather(ids)
    chosen = np.random.default_rng(0).integers(0, 4, (3, 3, 2))
    some = store.view(s=2).gather(ids, repeats=chosen)
    for i in range(3):
        for position in range(6):
            level = 3 - position // 2
            stored = (3 - level) * 4 + chosen[i, level - 1, position % 2]
            assert some.token(i, position).tolist() == whole.token(i, stored).tolist()


def test_tokens_of_three_hundred_nodes_have_wide_indices(tmp_path: Path) -> None:
    graph = Graph.from_edges(np.stack([np.arange(2000), (np.arange(2000) + 1) % 2000], 1))
    wanted = TokenSettings(m=300, M=1, s=1, walk="non-backtracking")
    store = write_store(tmp_path / "s.zarr", graph, wanted, block_size=500, orderings=())
    batch = store.view().gather([7])
    assert batch.walks is not None
    assert batch.walks.dtype == np.uint16
    first = batch.token(0, 0)
    assert len(first) == 301  # never turning back on a ring: 300 steps, 300 new nodes
    assert sequence(graph, wanted, 7)[0].nodes == first.tolist()
    assert_same_batch(
        store.view(m=50).gather([7]),
        write_store(tmp_path / "t.zarr", graph, TokenSettings(50, 1, 1, "non-backtracking"), orderings=())
        .view()
        .gather([7]),
    )


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_plain_zarr_reads_every_array(tmp_path: Path, codec) -> None:
    store = write_store(tmp_path / "s.zarr", ring_graph(edge_features=True), TokenSettings(3, 2, 2), codec=codec)
    group = zarr.open_group(str(store.path), mode="r")
    for name, specs in fixed_groups(store.manifest).items():
        for array, spec in specs.items():
            assert group[f"{name}/{array}"].shape == spec.shape
            assert group[f"{name}/{array}"].dtype == spec.dtype
    for number in range(store.manifest.blocks):
        block = store.block(number)
        for array, spec in block_specs(store.manifest, block.facts).items():
            np.testing.assert_array_equal(group[f"tokens/{block_name(number)}/{array}"][...], block[array])
            assert block[array].dtype == spec.dtype
    np.testing.assert_array_equal(group["graph/x"][...], store.graph.x)


def test_raw_arrays_are_mapped_not_copied(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.zarr", ring_graph(), TokenSettings(2, 2, 1))
    opened = store.block(0).opened
    assert all(array.mapping is not None for array in opened.values())
    assert not any(array.values.flags.owndata or array.values.flags.writeable for array in opened.values())


def test_blocks_give_every_node_once(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.zarr", ring_graph(), TokenSettings(2, 2, 1), block_size=7)
    batches = list(store.view(1, 1, 1).blocks())
    assert np.concatenate([b.node_ids for b in batches]).tolist() == list(range(40))
    assert_same_batch(batches[2], store.view(1, 1, 1).gather(np.arange(14, 21)))


def test_same_content_same_bytes(tmp_path: Path) -> None:
    one = write_store(tmp_path / "one.zarr", ring_graph(), TokenSettings(3, 2, 2))
    other = write_store(tmp_path / "other.zarr", ring_graph(), TokenSettings(3, 2, 2))
    files = {p.relative_to(one.path): p.read_bytes() for p in one.path.rglob("*") if p.is_file()}
    assert files == {p.relative_to(other.path): p.read_bytes() for p in other.path.rglob("*") if p.is_file()}
    assert one.fingerprint == other.fingerprint


def test_asking_for_more_says_what_there_is(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.zarr", ring_graph(), TokenSettings(3, 2, 2))
    with pytest.raises(ConfigError, match="the store has m=3 M=2 s=2"):
        store.view(m=4)
    with pytest.raises(ConfigError, match=r"0\.\.39"):
        store.view().gather([40])
    with pytest.raises(StoreError, match="has no ordering 'pagerank'"):
        store.ordering("pagerank")
    with pytest.raises(StoreError, match="has no encoding 'laplacian'"):
        store.encoding("laplacian")


def test_open_refuses_what_is_no_finished_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        TokenStore.open(tmp_path / "none.zarr")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="not a token store"):
        TokenStore.open(tmp_path / "empty")
    zarr.create_group(str(tmp_path / "other.zarr"))
    with pytest.raises(StoreError, match="not a token store"):
        TokenStore.open(tmp_path / "other.zarr")
    from gmn_pipeline import StoreWriter
    from gmn_pipeline.store.writing.writer import plan_manifest

    graph = ring_graph()
    StoreWriter.open(tmp_path / "u.zarr", plan_manifest(graph, TokenSettings(1, 1, 1), block_size=8), graph).close()
    with pytest.raises(StoreUnfinishedError, match="unfinished"):
        TokenStore.open(tmp_path / "u.zarr")


def test_zstd_cache_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "s.zarr"
    write_store(path, ring_graph(400, 200), TokenSettings(3, 2, 2), block_size=50, codec="zstd")
    store = TokenStore.open(path, cache_bytes=60_000)
    for batch in range(0, 400, 10):
        store.view().gather(np.arange(batch, batch + 10))
    assert store._cache._decoded_bytes() <= 60_000
