"""The pipeline from Python: `import gmn`, three lines for each stage, loaders, the transform and the notebook."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader as GraphLoader

import gmn
from gmn_pipeline.errors import ConfigError, DatasetError, StoreClashError, TrainError
from tests.stores import ring_graph

DOCS = Path(__file__).parents[2] / "docs"
SMALL = {"model.width": 8, "model.states": 2, "model.node_layers": 2}


def two_groups(n: int = 60) -> Data:
    """Two groups of nodes, most edges inside them; labels are the groups."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    ends = rng.integers(0, n, (2, 8 * n))
    ends = ends[:, (y[ends[0]] == y[ends[1]]) & (ends[0] != ends[1])]
    both = torch.from_numpy(np.concatenate([ends, ends[::-1]], 1))
    x = torch.from_numpy((y[:, None] + rng.normal(0, 2, (n, 3))).astype(np.float32))
    return Data(x=x, edge_index=both, y=torch.from_numpy(y), num_nodes=n)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_lines_each(here: Path) -> None:
    store = gmn.tokenize(two_groups(), m=2, M=2, s=1, path="groups.zarr")
    run = gmn.train(store, epochs=3, name="first", settings=SMALL)
    table = gmn.load_run("first").predict("groups.zarr")
    assert isinstance(store, gmn.TokenStore)
    assert len(table) == 60
    assert set(table["prediction"]) <= {0, 1}
    assert run.summary is not None
    assert run.summary["epochs"] == 3
    assert [row["epoch"] for row in run.metrics] == [0, 1, 2]
    assert run.evaluate()["test"] == pytest.approx(run.summary["test"])
    table.write(here / "p.csv")
    with pytest.raises(TrainError, match="ending must be one of"):
        table.write("p.txt")
    assert [found.path for found in gmn.list_runs()] == [run.path]
    assert run.resume(epochs=4).summary["epochs"] == 4  # type: ignore[index]
    assert isinstance(run.model, torch.nn.Module)
    assert Path(run.report("page.html")).exists()


def test_what_was_understood_is_told_without_asking(here: Path, capsys: Any) -> None:  # noqa: ARG001
    data = two_groups()
    data.y = torch.where(data.y == 0, -1, 1)
    data.edge_attr = torch.ones(data.edge_index.shape[1], 1)
    store = gmn.tokenize(data, m=1, M=1, s=1, path="g.zarr")
    told = capsys.readouterr()
    assert told.out == ""
    assert "note: labels -1, 1 are read as classes 0 to 1, in this order" in told.err.splitlines()
    assert "note: no split given: drew a random 60/20/20 split with seed 0" in told.err.splitlines()
    assert "task      node multiclass, 2 classes (-1, 1), accuracy; 60 of 60 nodes labelled" in told.err.splitlines()
    assert " in 0." not in told.err  # no times of phases: those are progress
    run = gmn.train(store, epochs=2, model="gcn", run_dir="run", settings={"model.width": 8, "model.node_layers": 2})
    said = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    assert said == ["stored, and not read by this model: edge features, tokens, ordering degree"]
    new = {"x": np.ones((4, 4)), "edges": [[0, 1], [2, 3]], "x_names": ["a", "b", "c", "d"]}
    gmn.tokenize(new, m=1, M=1, s=1, path="new.zarr", quiet=True)
    gmn.train(store, epochs=3, model="mlp", run_dir="mlp", settings={"model.width": 8}, quiet=True)
    run.resume(epochs=3, quiet=True)
    assert "".join(capsys.readouterr()) == ""


def test_prediction_names_columns_that_the_model_does_not_know(here: Path, capsys: Any) -> None:  # noqa: ARG001
    rng = np.random.default_rng(0)
    edges, x = rng.integers(0, 30, (80, 2)), rng.random((30, 2))
    known = {"edges": edges, "x": x, "x_names": ["a", "b"]}
    store = gmn.tokenize({**known, "y": np.arange(30) % 2}, m=1, M=1, s=1, path="a.zarr", quiet=True)
    run = gmn.train(store, epochs=1, model="mlp", run_dir="run", settings={"model.width": 8}, quiet=True)
    more = {**known, "x": rng.random((30, 3)), "x_names": ["b", "new", "a"]}
    gmn.tokenize(more, m=1, M=1, s=1, path="b.zarr", quiet=True)
    assert capsys.readouterr().err == ""
    table = run.predict("b.zarr")
    assert capsys.readouterr().err == f"note: {table.notes[0]}\n"
    assert table.notes == ("columns that the model was not trained on are not read: new",)
    run.predict("b.zarr", quiet=True)
    assert capsys.readouterr().err == ""


def test_the_store_of_a_graph_in_memory_is_found_again_and_not_mixed_up(here: Path) -> None:  # noqa: ARG001
    place = Path("ring.zarr")
    first = gmn.tokenize(ring_graph(), m=1, M=1, s=1, path=place)
    before = (place / "zarr.json").stat().st_mtime_ns
    again = gmn.tokenize(ring_graph(), m=1, M=1, s=1, path=str(place))
    assert again.fingerprint == first.fingerprint
    assert (place / "zarr.json").stat().st_mtime_ns == before
    with pytest.raises(StoreClashError, match="other content"):
        gmn.tokenize(two_groups(), m=1, M=1, s=1, path=place)
    other = gmn.tokenize(two_groups(), m=1, M=1, s=1, path=place, force=True)
    assert other.num_nodes == 60
    named = gmn.tokenize("minesweeper-grid", nodes=25, m=1, M=1, s=1, path="grid.zarr", lap_pe=2)
    assert list(named.manifest.encodings) == ["laplacian"]


def test_mistakes_are_one_line(here: Path) -> None:  # noqa: ARG001
    with pytest.raises(ConfigError, match=r"give path='mine.zarr'"):
        gmn.tokenize(ring_graph())
    with pytest.raises(ConfigError, match="did you mean 'lap_pe'"):
        gmn.tokenize(ring_graph(), path="x.zarr", lap_pa=2)
    with pytest.raises(DatasetError, match="holds int"):
        gmn.tokenize(5, path="x.zarr")
    with pytest.raises(TrainError, match="there is no run 'nothing'"):
        gmn.load_run("nothing")
    store = gmn.tokenize(ring_graph(), m=1, M=1, s=1, path="ring.zarr")
    with pytest.raises(ConfigError, match="did you mean 'epochs'"):
        gmn.train(store, epoch=3)


def test_a_watcher_is_told_of_every_epoch(here: Path, capsys: Any) -> None:  # noqa: ARG001
    told: list[tuple[int, float]] = []

    class Logger(gmn.Watcher):
        def epoch(self, row: dict[str, Any], best: float, best_epoch: int) -> None:  # noqa: ARG002
            told.append((row["epoch"], row["val"]))

    store = gmn.tokenize(two_groups(), m=1, M=1, s=1, path="g.zarr")
    run = gmn.train(store, epochs=2, run_dir="run", settings=SMALL, watcher=Logger())
    assert told == [(row["epoch"], row["val"]) for row in run.metrics]
    capsys.readouterr()
    run.resume(epochs=3, watcher=Logger(), progress=True)  # the display goes on beside it
    assert [epoch for epoch, _ in told] == [0, 1, 2]
    assert "epoch 3/3  loss " in capsys.readouterr().err


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_gives_what_the_view_gathers(here: Path, workers: int) -> None:  # noqa: ARG001
    store = gmn.tokenize(two_groups(), m=2, M=2, s=1, path="groups.zarr")
    nodes = np.arange(3, 40)
    loader = gmn.token_loader(store.path, nodes, batch_size=16, m=1, num_workers=workers)
    batches = list(loader)
    assert [len(batch.node_ids) for batch in batches] == [16, 16, 5]
    wanted = store.view(m=1).gather(nodes[:16])
    for name in ("nodes", "node_ptr", "edges", "edge_ptr", "walks", "node_ids"):
        assert np.array_equal(getattr(batches[0], name).numpy(), getattr(wanted, name)), name
    assert batches[0].length == wanted.length
    assert torch.equal(batches[0].to("cpu").nodes, batches[0].nodes)


@pytest.mark.parametrize("directed", [False, True])
def test_the_transform_gives_the_store_s_tokens_and_is_batched_by_pyg(here: Path, directed: bool) -> None:  # noqa: ARG001
    data = two_groups()
    data.edge_index = torch.cat([data.edge_index[:, :300], torch.tensor([[0, 5, 5], [1, 5, 9]])], 1)  # one way, a loop
    store = gmn.tokenize(data, m=2, M=2, s=1, path="groups.zarr", directed=directed)
    batch = store.view().gather(np.arange(60))
    done = gmn.AddTokens(m=2, M=2, s=1, directed=directed)(data)
    assert np.array_equal(done.token_index.numpy(), batch.nodes)
    assert np.array_equal(done.token_sizes.numpy(), np.diff(batch.node_ptr))
    assert np.array_equal(done.token_edges.numpy(), batch.edges)
    assert repr(gmn.AddTokens(2, 2, 1)) == "AddTokens(m=2, M=2, s=1)"
    two = next(iter(GraphLoader([done, done], batch_size=2)))
    length = len(done.token_index)
    assert torch.equal(two.token_index[length:], done.token_index + 60)
    assert torch.equal(two.token_edges[len(done.token_edges) :], done.token_edges)


def test_importing_costs_nothing() -> None:
    code = "import sys, gmn; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numba", "zarr", "numpy", "pydantic", "gmn_prep", "gmn_train"} & set(loaded)
    assert set(gmn.__all__) >= {"tokenize", "train", "load_run"}
    with pytest.raises(AttributeError, match="no attribute 'tokenise'"):
        _ = gmn.tokenise


def run_blocks(blocks: list[str], **names: Any) -> dict[str, Any]:
    """Code blocks, one after the other, with fewer epochs; returns the names they leave."""
    for block in blocks:
        exec(re.sub(r"epochs=\d+", "epochs=2", block), names)
    return names


def test_the_notebook_runs(here: Path) -> None:  # noqa: ARG001
    notebook = json.loads((DOCS / "notebook.ipynb").read_text())
    assert notebook["nbformat"] == 4
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names = run_blocks(cells)
    assert names["run"].summary["test"] > 0


def test_the_page_about_python_runs(here: Path) -> None:  # noqa: ARG001
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "python.md").read_text(), re.S)
    names = run_blocks([block for block in blocks if "import wandb" not in block], data=two_groups())
    assert names["run"].summary["epochs"] == 2
