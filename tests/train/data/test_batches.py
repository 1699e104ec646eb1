"""Plans of epochs: every item once, reproducible, and near each other in the store where it is large."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmn_pipeline import TokenSettings
from gmn_train.data import steps as batches
from gmn_train.data.read_ahead import ReadAhead
from gmn_train.data.steps import SHUFFLE_WINDOW, keyed_shuffle, plan_epoch, split_items
from gmn_train.settings.model_settings import ModelConfig
from tests.stores import write_store
from tests.train.small_runs import many_graphs, prepare, settings_for


@given(count=st.integers(0, 200), size=st.integers(1, 50), seed=st.integers(0, 9), blocks=st.integers(0, 150))
def test_an_epoch_has_every_item_once(count: int, size: int, seed: int, blocks: int) -> None:
    items = np.flatnonzero(np.random.default_rng(seed).random(count * 2) < 0.5)
    block_ptr = None if blocks == 0 else np.linspace(0, count * 2, blocks + 1).astype(int)
    steps = plan_epoch(items, size, seed, 3, block_ptr=block_ptr)
    assert sorted(np.concatenate([s.units for s in steps]).tolist() if steps else []) == items.tolist()
    assert [s.number for s in steps] == list(range(len(steps)))
    assert all(len(s.units) == size for s in steps[:-1])
    again = plan_epoch(items, size, seed, 3, block_ptr=block_ptr)
    assert all(np.array_equal(a.units, b.units) for a, b in zip(steps, again, strict=True))


def test_epochs_and_seeds_differ() -> None:
    items = np.arange(1000)
    orders = {tuple(keyed_shuffle(items, seed, epoch)) for seed in range(3) for epoch in range(3)}
    assert len(orders) == 9


def test_large_stores_are_read_window_by_window() -> None:
    block_ptr = np.arange(0, 100_001, 100)
    steps = plan_epoch(np.arange(100_000), 200, 0, 0, block_ptr=block_ptr)
    per_window = SHUFFLE_WINDOW * 100 // 200
    touched = {int(b) for s in steps[:per_window] for b in np.asarray(s.units) // 100}
    assert len(touched) == SHUFFLE_WINDOW
    assert len({int(b) for b in np.asarray(steps[0].units) // 100}) > 20  # well mixed within the window


def test_split_items() -> None:
    splits = np.array([[1, 2, 3, 0], [3, 1, 1, 2]])
    assert split_items(splits, 1, 1, 4).tolist() == [1, 2]
    assert split_items(None, 0, 1, 4).tolist() == [0, 1, 2, 3]


def test_read_ahead_keeps_order_and_passes_errors_on() -> None:
    for threads in (1, 3):
        made = list(ReadAhead(range(1, 20), lambda i: i * i, threads=threads))
        assert made == [(i, i * i) for i in range(1, 20)]

    def fail(i: int) -> int:
        if i == 3:
            raise ValueError("three")
        return i

    ahead = iter(ReadAhead(range(1, 9), fail))
    assert [next(ahead), next(ahead)] == [(1, 1), (2, 2)]
    with pytest.raises(ValueError, match="three"):
        next(ahead)


def test_graphs_of_a_store_with_many_blocks_are_shuffled_by_windows_of_blocks(tmp_path, monkeypatch):
    """As nodes are: a step's graphs lie in one window of blocks, or in two where it crosses a border."""
    window = 10
    monkeypatch.setattr(batches, "SHUFFLE_WINDOW", window)
    store = write_store(tmp_path / "g.zarr", many_graphs(count=40), TokenSettings(1, 1, 1), block_size=8)
    blocks = len(store.block_ptr) - 1
    assert blocks > 2 * window
    config = settings_for(store, batch_size=3, model=ModelConfig(width=8, states=2, node_layers=1))
    sampler = prepare(config).sampler
    steps = sampler.training_steps(0)
    taken = np.concatenate([step.units for step in steps])
    np.testing.assert_array_equal(np.sort(taken), sampler.data.items["train"])
    block_of = np.searchsorted(store.block_ptr, store.graph.graph_ptr[taken], side="right") - 1
    order = keyed_shuffle(np.arange(blocks), 0, 0, 0)
    window_of = np.empty(blocks, dtype=int)
    window_of[order] = np.arange(blocks) // window
    # A sorted step may hold the end of one window and the beginning of the next, never more.
    for step in np.split(window_of[block_of], np.cumsum([len(s.units) for s in steps])[:-1]):
        assert step.max() - step.min() <= 1
    assert not np.array_equal(np.concatenate([s.units for s in sampler.training_steps(1)]), taken)
