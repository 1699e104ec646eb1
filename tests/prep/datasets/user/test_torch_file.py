import numpy as np
import pytest

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph
from gmn_pipeline.task import Task
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_prep.datasets.public.raw.quiet_loader import quiet_loader

with quiet_loader(downloading=False):
    import torch
    from torch_geometric.data import Data


def load(path, **options):
    return load_dataset(str(path), DatasetOptions(**options))


def some_graph(**fields):
    rng = np.random.default_rng(0)
    return Graph.from_edges(
        rng.integers(0, 20, (50, 2)),
        20,
        x=rng.normal(size=(20, 3)),
        y=rng.integers(0, 4, 20),
        splits=rng.integers(0, 4, (2, 20)).astype(np.uint8),
        task=Task.of("node", "multiclass", 4),
        **fields,
    )


@pytest.mark.parametrize("form", ["data", "dict"])
@pytest.mark.parametrize("directed", [False, True])
def test_round_trip(tmp_path, form, directed):
    graph = some_graph(directed=directed)
    data = graph.to_pyg()
    torch.save(data if form == "data" else data.to_dict(), tmp_path / "mine.pt")
    loaded = load(tmp_path / "mine.pt", directed=directed)
    assert loaded.name == "mine"
    assert loaded.graph.task == graph.task
    for name, array in graph.arrays().items():
        assert np.array_equal(loaded.graph.arrays()[name], array), name


def test_many_graphs_stay_many_in_one_data(tmp_path):
    ptr = np.array([0, 2, 5])
    task = Task.of("graph", "multiclass", 2)
    graph = Graph.from_edges([[0, 1], [2, 3]], 5, graph_ptr=ptr, y=[0, 1], splits=[[1, 3]], task=task)
    torch.save(graph.to_pyg(), tmp_path / "many.pt")
    again = load(tmp_path / "many.pt").graph
    assert again.graph_ptr.tolist() == [0, 2, 5]
    assert again.task == task


def test_list_of_graphs(tmp_path):
    items = [
        Data(edge_index=torch.tensor([[0, 1], [1, 0]]), x=torch.ones(2, 1), y=torch.tensor([0.5])),
        Data(edge_index=torch.tensor([[0, 1, 1], [1, 2, 0]]), x=torch.ones(3, 1), y=torch.tensor([1.5])),
    ]
    torch.save(items, tmp_path / "list.pt")
    loaded = load(tmp_path / "list.pt")
    assert loaded.graph.graph_ptr.tolist() == [0, 2, 5]
    assert loaded.graph.task == Task.of("graph", "regression", 1)
    assert loaded.graph.y.tolist() == [[0.5], [1.5]]
    assert loaded.graph.indices.tolist() == [1, 0, 3, 2, 4, 3]
    assert loaded.notices[0].startswith("no split given")


def test_uneven_graphs_are_refused(tmp_path):
    edge_index = torch.tensor([[0], [1]])
    torch.save([Data(edge_index=edge_index, x=torch.ones(2, 1)), Data(edge_index=edge_index)], tmp_path / "l.pt")
    with pytest.raises(DatasetError, match="graph 1 has no x while others do"):
        load(tmp_path / "l.pt")


class Foreign:
    pass


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Foreign(), "holds more than tensors and PyG Data"),
        (torch.ones(3), "holds Tensor; it must hold a PyG Data"),
        ([], "holds nothing"),
        ({"x": torch.ones(3, 1)}, "there are no edges; give edges as"),
        (
            Data(edge_index=torch.tensor([[0], [1]]), x=torch.full((2, 1), torch.nan)),
            "mine.pt: x has 2 values",
        ),
    ],
)
def test_mistakes_are_said_in_one_line(tmp_path, content, message):
    torch.save(content, tmp_path / "mine.pt")
    with pytest.raises(DatasetError, match=message) as caught:
        load(tmp_path / "mine.pt")
    assert "\n" not in str(caught.value)


def test_a_file_that_torch_did_not_save(tmp_path):
    (tmp_path / "broken.pt").write_bytes(b"hello")
    with pytest.raises(DatasetError, match=r"broken\.pt"):
        load(tmp_path / "broken.pt")
