import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_prep.datasets.splits import draw_splits, first_by_key
from tests.reference.counter_random import draw

SPLIT = 9


@settings(max_examples=30, deadline=None)
@given(items=st.integers(0, 60), seed=st.integers(0, 2**64 - 1), row=st.integers(0, 2))
def test_items_go_by_their_draw(items, seed, row):
    codes = draw_splits(items, (0.6, 0.2), seed, count=3)[row]
    order = sorted(range(items), key=lambda i: draw(seed, SPLIT, row, i))
    train, val = round(0.6 * items), round(0.8 * items)
    wanted = dict.fromkeys(order[:train], 1) | dict.fromkeys(order[train:val], 2) | dict.fromkeys(order[val:], 3)
    assert codes.tolist() == [wanted[i] for i in range(items)]


@given(labels=st.lists(st.integers(-1, 3), max_size=80), seed=st.integers(0, 99))
def test_every_label_is_shared_out_by_itself(labels, seed):
    labels = np.array(labels, dtype=np.int64)
    codes = draw_splits(labels.size, (0.5, 0.25), seed, strata=labels)[0]
    assert np.all((codes == 0) == (labels < 0))
    for label in set(labels[labels >= 0].tolist()):
        members = codes[labels == label]
        assert abs((members == 1).sum() - members.size / 2) <= 1
        assert abs((members == 2).sum() - members.size / 4) <= 1


@given(keys=st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=40), count=st.integers(-1, 45))
def test_first_by_key_takes_exactly_the_smallest(keys, count):
    keys = np.array(keys, dtype=np.uint64)
    chosen = first_by_key(keys, count)
    assert chosen.sum() == min(max(count, 0), keys.size)
    assert set(keys[chosen]) == set(np.sort(keys)[: max(count, 0)])
