"""Graphs in memory are read as files of them are."""

import numpy as np
import pytest

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions
from gmn_prep.datasets.user.user_object import load_object
from tests.prep.datasets.user.array_cases import INDEX, RING, Data, hetero, torch
from tests.stores import ring_graph


def test_a_graph_stays_as_it_is():
    graph = ring_graph()
    assert load_object(graph).graph is graph


def test_pyg_and_dicts():
    y = torch.tensor([-1, 1, -1, 1])
    loaded = load_object(Data(edge_index=INDEX, y=y), name="mine")
    assert loaded.name == "mine"
    assert loaded.graph.task.class_names == ("-1", "1")
    assert loaded.notices[0].startswith("labels -1, 1 are read as classes")
    plain = load_object({"edge_index": RING, "y": np.array([0.5, 1, 2, 3]), "node_ids": list("abcd")})
    assert plain.graph.task.kind == "regression"
    assert list(plain.graph.node_ids) == list("abcd")
    many = load_object([Data(edge_index=INDEX, num_nodes=4, y=i) for i in range(3)], DatasetOptions(seed=3))
    assert (many.graph.num_graphs, many.graph.task.item) == (3, "graph")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "holds int"),
        ("text", "holds str"),
        ([], "holds nothing"),
        (hetero(), "HeteroData; save data.to_homogeneous"),
    ],
)
def test_others_are_refused(data, message):
    with pytest.raises(DatasetError, match=message) as caught:
        load_object(data)
    assert "\n" not in str(caught.value)
