"""Link tasks on held-out edges: nothing that is asked for is left in the graph."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gmn_pipeline import Graph, Task
from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, dataset_identity, load_dataset, store_name
from gmn_prep.datasets.links import hold_out_links
from tests.prep.datasets.public.raw_samples import write_minesweeper
from tests.reference.links import hold_out
from tests.strategies import graphs

LINK = Task.of("link", "binary", 2, "roc_auc")


def slots(graph):
    """Each slot with its edge's features, in order."""
    rows = [()] * graph.num_slots if graph.edge_attr is None else map(tuple, graph.edge_attr.tolist())
    return list(zip(graph.slot_sources.tolist(), graph.indices.tolist(), rows, strict=True))


@settings(max_examples=60, deadline=None)
@given(graph=graphs(max_nodes=14), seed=st.integers(0, 2**64 - 1))
def test_agrees_with_slow_twin(graph, seed):
    targets, items = hold_out(graph, seed, tries=15)
    assume({part for *_, label, part in items if label} == {1, 2, 3})
    links, notices = hold_out_links(graph, seed, tries=15)
    y, splits = links.y.tolist(), links.splits[0].tolist()
    assert [(*pair, label, part) for pair, label, part in zip(links.pairs.tolist(), y, splits, strict=True)] == items
    assert slots(links) == [slot for slot in slots(graph) if (min(slot[:2]), max(slot[:2])) not in targets]
    assert links.task == LINK
    assert (links.directed, links.x is None) == (graph.directed, graph.x is None)
    assert len(notices) == 1 + (len(items) < 2 * len(targets))


def test_what_is_asked_for_is_nowhere_in_the_graph():
    whole = load_dataset("minesweeper-grid", DatasetOptions(nodes=2500)).graph
    loaded = load_dataset("minesweeper-grid", DatasetOptions(nodes=2500, task="link"))
    graph = loaded.graph.check()
    before, after = ({frozenset(slot[:2]) for slot in slots(g)} for g in (whole, graph))
    pairs = [frozenset(pair) for pair in graph.pairs.tolist()]
    linked = {pair for pair, label in zip(pairs, graph.y, strict=True) if label}
    assert linked == before - after
    assert not after & linked
    assert not before & (set(pairs) - linked)
    assert len(set(pairs)) == len(pairs)
    assert all(len(pair) == 2 for pair in pairs)
    edges = whole.num_edges
    train, val, test = round(0.3 * round(0.85 * edges)), round(0.9 * edges) - round(0.85 * edges), edges // 10
    for label in (0, 1):
        counts = np.bincount(graph.splits[0][graph.y == label], minlength=4)
        assert np.allclose(counts, [0, train, val, test], atol=1)
    assert np.array_equal(graph.x, whole.x)
    assert abs(graph.num_slots - 0.595 * whole.num_slots) < 10
    assert abs((graph.pairs[:, 0] < graph.pairs[:, 1]).mean() - 0.5) < 0.05  # ids do not tell
    assert loaded.name == "minesweeper-grid-link"
    assert loaded.notices[0].startswith(f"links: {train:,} + ")


def test_pairs_stay_within_their_graph():
    graph = load_dataset("sbm-pattern", DatasetOptions(graphs=20, task="link")).graph.check()
    graph_of = np.repeat(np.arange(20), np.diff(graph.graph_ptr))
    assert np.array_equal(*graph_of[graph.pairs].T)
    for label in (0, 1):  # as many of each in every graph
        counts = np.bincount(graph_of[graph.pairs[graph.y == label][:, 0]], minlength=20)
        assert np.array_equal(counts, np.bincount(graph_of[graph.pairs[graph.y == 1][:, 0]], minlength=20))


def test_too_few_edges_and_too_few_unlinked_pairs():
    with pytest.raises(DatasetError, match="3 edges are too few"):
        hold_out_links(Graph.from_edges([[0, 1], [1, 2], [2, 3]]), 0)
    complete = Graph.from_edges([(a, b) for a in range(8) for b in range(a)])
    links, notices = hold_out_links(complete, 0)
    assert links.y.all()
    assert notices[1].startswith("11 of them have no unlinked pair")


def test_the_identity_knows_the_task(root):
    write_minesweeper(root)
    kinds = [{}, {"task": "link"}, {"task": "link", "seed": 1}, {"task": "link", "metric": "mrr"}]
    found = [dataset_identity("minesweeper", DatasetOptions(data_root=root, **kind)) for kind in kinds]
    assert all(a != b for i, a in enumerate(found) for b in found[:i])
    assert found[0] == dataset_identity("minesweeper", DatasetOptions(data_root=root, task="node-binary"))
    assert found[1] == dataset_identity("minesweeper", DatasetOptions(data_root=root, task="link-binary"))


@pytest.mark.parametrize(
    ("name", "task", "store"),
    [
        ("ogbn-arxiv", "link", "arxiv-link"),
        ("ogbn-arxiv", "node", "arxiv"),
        ("cora", "multiclass", "cora"),
        ("pcqm-contact", "link", "pcqm-contact"),
        ("web.npz", "link", "web-link"),
        ("web.npz", "node", "web"),
    ],
)
def test_store_name(name, task, store):
    assert store_name(name, DatasetOptions(task=task)) == store


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cora", {"task": "graph"}, "--task graph does not fit cora; allowed: node-multiclass, link$"),
        ("cora", {"task": "link-multiclass"}, "--task link-multiclass does not fit cora"),
        ("peptides-func", {"task": "link"}, "--task link does not fit peptides-func; allowed: graph-multilabel$"),
        ("cora", {"task": "lnk"}, "task 'lnk' is not known.*did you mean 'link'"),
        ("cora", {"metric": "mrr"}, "--metric does not apply to cora"),
        ("minesweeper-grid", {"task": "link", "metric": "mae"}, "metric 'mae' does not fit a link task; allowed: roc"),
    ],
)
def test_mistakes_are_said_in_one_line(name, options, message):
    for ask in (load_dataset, dataset_identity):
        with pytest.raises(DatasetError, match=message):
            ask(name, DatasetOptions(**options))


def test_own_file(tmp_path):
    ring = np.stack([np.arange(40), (np.arange(40) + 1) % 40], axis=1)
    np.savez(tmp_path / "ring.npz", edges=ring, y=np.arange(40) % 3, x=np.ones((40, 2)))
    loaded = load_dataset(str(tmp_path / "ring.npz"), DatasetOptions(task="link", metric="mrr"))
    assert loaded.name == "ring-link"
    graph = loaded.graph.check()
    assert graph.task == Task.of("link", "binary", 2, "mrr")
    assert graph.num_edges + graph.y.sum() == 40
    np.savez(tmp_path / "pairs.npz", edges=ring, pairs=[[0, 5], [1, 2]], y=[0, 1], splits=[1, 3])
    given = load_dataset(str(tmp_path / "pairs.npz"), DatasetOptions(task="link")).graph
    assert (given.num_edges, given.pairs.tolist()) == (40, [[0, 5], [1, 2]])  # the file's own pairs
    with pytest.raises(DatasetError, match=r"ring\.npz: a link task on held-out edges is binary, not regression"):
        load_dataset(str(tmp_path / "ring.npz"), DatasetOptions(task="link-regression"))
