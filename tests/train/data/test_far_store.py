"""Training from an object store: what later steps read is fetched while earlier ones compute."""

from typing import Any

import pytest

from gmn_pipeline import TokenSettings
from gmn_pipeline.place import StoreUrl
from gmn_train.data.read_ahead import look_ahead
from tests.object_server import FaultyProxy
from tests.stores import ring_graph, write_store
from tests.train.small_runs import many_graphs, prepare, settings_for
from tests.waiting import wait_until


def test_looking_ahead_tells_of_each_item_before_it_comes() -> None:
    told: list[int] = []
    came = []
    for item in look_ahead(range(12), told.append, ahead=5):
        came.append(item)
        assert told == list(range(min(item + 6, 12)))
    assert came == list(range(12))


@pytest.mark.parametrize("mode", ["full", "batch", "graphs"])
def test_a_step_told_of_in_time_does_not_wait_for_the_network(s3: FaultyProxy, mode: Any) -> None:
    graph = many_graphs(count=40) if mode == "graphs" else ring_graph(200, 100)
    store = write_store(StoreUrl("bucket", f"told-{mode}/s.zarr"), graph, TokenSettings(2, 2, 1))
    sampler = prepare(settings_for(store, mode=mode, batch_nodes=20, batch_size=4)).sampler
    first = sampler.training_steps(0)[0]
    s3.reset()
    sampler.expect(first)
    storage: Any = sampler.data.store.storage
    wait_until(lambda: not storage._lanes)
    blocks = {path.split("/")[3] for path in s3.paths("GET") if "/walks/" in path}
    assert 0 < len(blocks) <= store.manifest.blocks
    s3.reset()
    loaded = sampler.load(first, 0)
    assert sum(len(chunk) for chunk in loaded.inputs.tokens) > 0
    assert [path for path in s3.paths("GET") if "/c/" in path] == []
