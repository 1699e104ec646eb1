import numpy as np
import pytest

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_prep.datasets.generated.skip_ring import load_skip_ring


def spectrum(graph, g):
    start, stop = graph.graph_ptr[g], graph.graph_ptr[g + 1]
    dense = np.zeros((stop - start, stop - start))
    for v in range(start, stop):
        dense[v - start, graph.indices[graph.indptr[v] : graph.indptr[v + 1]] - start] = 1
    return np.linalg.eigvalsh(dense)


def circulant_spectrum(n, skip):
    angle = 2 * np.pi * np.arange(n) / n
    return np.sort(2 * np.cos(angle) + 2 * np.cos(skip * angle))


def test_graphs_are_the_circulants_of_their_class():
    graph = load_skip_ring(DatasetOptions(graphs=40, seed=5)).check()
    assert graph.is_simple
    assert set(graph.degrees) == {4}
    for g in range(40):
        n = graph.graph_ptr[g + 1] - graph.graph_ptr[g]
        assert np.allclose(spectrum(graph, g), circulant_spectrum(n, 2 + graph.y[g]), atol=1e-9)


def test_no_two_classes_share_a_graph():
    for n in range(24, 49):
        spectra = [circulant_spectrum(n, skip) for skip in (2, 3, 4, 5)]
        for i in range(4):
            for j in range(i):
                assert not np.allclose(spectra[i], spectra[j], atol=1e-6)


def test_sizes_splits_and_shuffling():
    graph = load_skip_ring(DatasetOptions(graphs=1000))
    sizes = np.diff(graph.graph_ptr)
    assert (sizes.min(), sizes.max()) == (24, 48)
    assert np.bincount(graph.y).tolist() == [250] * 4
    for label in range(4):
        assert np.bincount(graph.splits[0, graph.y == label]).tolist() == [0, 150, 50, 50]
    assert abs(graph.num_nodes / 36_000 - 1) < 0.03
    assert graph.num_slots == 4 * graph.num_nodes
    # Ids do not tell the place on the ring: neighbours by id are linked no more often than others.
    linked = np.mean([v + 1 in graph.indices[4 * v : 4 * v + 4] for v in range(graph.num_nodes - 1)])
    assert linked < 0.2


def test_refuses_no_graphs():
    with pytest.raises(DatasetError, match="--graphs 1 or more"):
        load_dataset("skip-ring", DatasetOptions(graphs=-1))
