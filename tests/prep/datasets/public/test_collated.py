"""Many graphs converted all at once, against the conversion graph by graph."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline.errors import GraphError
from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets.public.raw import collated
from gmn_prep.datasets.public.raw.quiet_loader import quiet_loader

with quiet_loader(downloading=False):
    import torch
    from torch_geometric.data import Data


def draw_item(rng, n):
    edges = rng.integers(0, n, (2, rng.integers(0, 3 * n))) if n else np.zeros((2, 0), dtype=np.int64)
    return {
        "x": rng.normal(size=(n, 2)),
        "edge_index": edges,
        "edge_attr": rng.integers(0, 3, (edges.shape[1], 2)),
        "y": rng.integers(0, 3, 1),
    }


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=5), min_size=1, max_size=3),
    seed=st.integers(0, 999),
    directed=st.booleans(),
    edges_at_a_time=st.sampled_from([1, 5, 1000]),
)
def test_agrees_with_the_conversion_graph_by_graph(sizes, seed, directed, edges_at_a_time):
    rng = np.random.default_rng(seed)
    items = [[draw_item(rng, n) for n in part] for part in sizes]
    task = Task.of("graph", "multiclass", 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collated, "EDGES_AT_A_TIME", edges_at_a_time)
        graphs = collated.collate(zip(collated.PARTS, items, strict=False))
        made = collated.union_graph(graphs, task, directed=directed, x=graphs.fields["x"], y=graphs.fields["y"])
    tensors = [{key: torch.from_numpy(value) for key, value in item.items()} for part in items for item in part]
    wanted = Graph.from_pyg([Data(**item) for item in tensors], task, directed=directed)
    for name, array in wanted.arrays().items():
        assert np.array_equal(made.arrays()[name], array), name
    assert made.splits.tolist() == [[code for code, part in enumerate(items, 1) for _ in part]]


@pytest.mark.parametrize("end", [-1, 2, 2**40])
def test_an_end_outside_its_graph_is_refused(end):
    item = {"x": np.ones((2, 1)), "edge_index": np.array([[0], [end]], dtype=np.int32 if end < 2**31 else np.int64)}
    with pytest.raises((GraphError, OverflowError, ValueError)):
        collated.union_graph(collated.collate([("train", [item, item])]), Task.of("graph", "multiclass", 3))
