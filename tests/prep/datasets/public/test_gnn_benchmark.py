"""MNIST, CIFAR10 and PATTERN of "Benchmarking Graph Neural Networks", on tiny files."""

import numpy as np
import pytest

from gmn_prep.datasets import DATASETS, DatasetOptions, load_dataset
from tests.prep.datasets.public.drawn_graphs import pattern, pixels
from tests.prep.datasets.public.many_graph_samples import draw_items, expected_graph, write_gnn_benchmark
from tests.prep.datasets.public.raw_folders import assert_same


@pytest.mark.parametrize(("name", "colours"), [("mnist", 1), ("cifar10", 3)])
def test_superpixels_have_colour_and_place(root, name, colours):
    items = draw_items(lambda rng, n: pixels(colours, rng, n))
    write_gnn_benchmark(root, name.upper(), items)
    for part in items.values():
        for item in part:
            item["x"] = np.concatenate([item["x"], item.pop("pos")], axis=1)
    for directed in (False, True):
        graph = load_dataset(name, DatasetOptions(data_root=root, directed=directed)).graph.check()
        assert_same(graph, expected_graph(items, DATASETS[name].predicts, directed=directed))
        assert graph.x.shape[1] == colours + 2
        assert graph.edge_attr.shape == (graph.num_slots, 1)
    assert (graph.task.item, graph.task.classes, graph.task.metric) == ("graph", 10, "accuracy")


def test_pattern(root):
    items = draw_items(pattern)
    write_gnn_benchmark(root, "PATTERN", items)
    loaded = load_dataset("pattern", DatasetOptions(data_root=root, directed=True))
    graph = loaded.graph.check()
    assert_same(graph, expected_graph(items, DATASETS["pattern"].predicts))
    assert graph.edge_attr is None
    assert (graph.task.item, graph.task.metric, graph.task.class_weighted) == ("node", "weighted_accuracy", True)
    assert graph.task == load_dataset("sbm-pattern", DatasetOptions(graphs=3)).graph.task
    assert loaded.notices == ("pattern has no directed edges; --directed changes nothing",)
