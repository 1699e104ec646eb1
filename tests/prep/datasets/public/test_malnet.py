"""MalNet-Tiny through PyG's loader, on tiny edge lists."""

import numpy as np
import pytest

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, dataset_identity, load_dataset
from gmn_prep.datasets.public import public_dataset
from tests.prep.datasets.public.drawn_graphs import MALNET
from tests.prep.datasets.public.many_graph_samples import write_malnet


def load(root, **options):
    return load_dataset("malnet-tiny", DatasetOptions(data_root=root, **options)).graph.check()


def test_nodes_are_those_that_edges_link(root):
    write_malnet(root, MALNET)
    graph = load(root)
    assert np.diff(graph.graph_ptr).tolist() == [3, 2, 2, 4, 2, 3]
    edges = set(zip(graph.slot_sources.tolist(), graph.indices.tolist(), strict=True))
    one_way = {(0, 1), (1, 2), (2, 0), (3, 4), (5, 6), (7, 8), (7, 9), (7, 10), (11, 12), (13, 14), (13, 15)}
    assert edges == one_way | {(b, a) for a, b in one_way}
    assert graph.splits.tolist() == [[1, 1, 1, 2, 3, 3]]
    assert graph.y.tolist() == [0, 1, 2, 1, 3, 4]  # types by first occurrence
    assert (graph.task.classes, graph.task.metric) == (5, "accuracy")


def test_directions_may_stay(root):
    write_malnet(root, MALNET)
    edges = [(0, 1), (1, 2), (2, 0), (2, 1), (3, 4), (6, 5), (7, 8), (7, 9), (7, 10), (11, 12), (14, 13), (15, 13)]
    graph = load(root, directed=True)
    assert list(zip(graph.slot_sources.tolist(), graph.indices.tolist(), strict=True)) == edges


def test_features_are_the_local_degree_profile(root):
    write_malnet(root, MALNET)
    graph = load(root)
    first = 0
    for named in MALNET.values():
        for edges in named.values():
            nodes = sorted({end for a, b in edges if a != b for end in (a, b)})
            linked = [(a, b) for a, b in edges if a in nodes]
            degree = {v: sum(a == v for a, _ in linked) for v in nodes}
            for row, v in enumerate(nodes, first):
                around = [degree[b] for a, b in linked if a == v] or [0]
                wanted = [degree[v], min(around), max(around), np.mean(around), np.std(around)]
                assert np.allclose(graph.x[row], wanted, atol=0.004), (row, v)  # PyG adds 1e-5 to variances
            first += len(nodes)
    assert first == graph.num_nodes


def test_every_edge_list_counts(root, monkeypatch):
    monkeypatch.setattr(public_dataset, "unreachable", lambda _: "no network")
    with pytest.raises(DatasetError) as caught:
        load(root)
    listings = ", ".join(f"raw/split_info_tiny/type/{part}.txt" for part in ("train", "val", "test"))
    assert str(caught.value).endswith(
        f"put {listings}, raw/malnet-graphs-tiny/TYPE/FAMILY/NAME.edgelist for each name in them "
        f"into {root}/malnet-tiny"
    )
    folder = write_malnet(root, MALNET)
    before = dataset_identity("malnet-tiny", DatasetOptions(data_root=root))
    path = folder / "malnet-graphs-tiny/adware/b/G4.edgelist"
    path.write_text(path.read_text() + "3\t1\n")
    assert dataset_identity("malnet-tiny", DatasetOptions(data_root=root)) != before
    path.unlink()
    with pytest.raises(DatasetError, match=r"put raw/malnet-graphs-tiny/adware/b/G4\.edgelist into"):
        load(root)


@pytest.mark.parametrize("content", [b"\xc6\x28", b"../../secret/a", b"adware/a", b"x" * 5000, b"a/b/c\0d"])
def test_a_list_of_anything_else_is_refused_in_one_line(root, content):
    folder = write_malnet(root, MALNET)
    (folder / "split_info_tiny/type/val.txt").write_bytes(content)
    with pytest.raises(DatasetError, match=r"malnet-tiny: val.txt lists '.*', no TYPE/FAMILY/NAME"):
        load(root)
