"""Long-range tasks at their recipes: message passing of equal depth does not see the answer, and tokens do."""

from pathlib import Path

import numpy as np
import pytest

from gmn_pipeline import Graph, TokenSettings
from gmn_pipeline.recipes import read_recipe
from gmn_pipeline.types import FloatArray
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_train.learning.predictions import predict_parts
from gmn_train.settings.request import read_request
from tests.stores import write_store
from tests.train.small_runs import prepare

GRAPHS = 5


def with_another_answer(graph: Graph, name: str) -> tuple[Graph, list[int]]:
    """The graph with all that decides the answer of one asked node per graph drawn anew; and these nodes."""
    assert graph.x is not None
    assert graph.splits is not None
    x, n, asked = graph.x.copy(), graph.num_nodes // GRAPHS, []
    for first in range(0, graph.num_nodes, n):
        mine = [v for v in range(first, first + n) if graph.splits[0, v]]
        asked.append(mine[0])
        if name == "ring-transfer":
            there = [farthest(graph, mine[0], range(first, first + n))]
        elif name == "tree-match":
            there = [v for v in range(first, first + n) if graph.x[v, 1]]
        else:
            there = mine[1:]
        column, low, count = (1, 1, 8) if name == "tree-match" else (0, 0, 4)
        x[there, column] = low + (x[there, column] - low + 1) % count
    return graph.replace(x=x), asked


def farthest(graph: Graph, start: int, nodes: range) -> int:
    reached, front = {start}, {start}
    while len(reached) < len(nodes):
        front = {int(u) for v in front for u in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]} - reached
        reached |= front
    (last,) = front
    return last


def scores(path: Path, graph: Graph, name: str, model: str) -> FloatArray:
    """Of all asked nodes, by number, before any training."""
    tokenize = read_recipe(name).tokenize
    settings = TokenSettings(tokenize["m"], tokenize["M"], tokenize["s"], walk=tokenize["walk"])
    store = write_store(path, graph, settings, dataset=name)
    training = prepare(read_request({"store": store.path, "model.name": model, "threads": 1}).config)
    parts = predict_parts(training.sampler, training.model, training.compute, ("train", "val", "test"))
    out = np.zeros((graph.num_nodes, 8 if name == "tree-match" else 4))
    for part, (values, _) in parts.items():
        out[training.sampler.data.items[part]] = values
    return out


@pytest.mark.parametrize("name", ["ring-transfer", "tree-match", "distant-pairs"])
def test_only_tokens_see_the_answer(name: str, tmp_path: Path, one_thread: None) -> None:  # noqa: ARG001
    graph = load_dataset(name, DatasetOptions(graphs=GRAPHS)).graph
    changed, asked = with_another_answer(graph, name)
    seen = {}
    for model in ("mpnn", "gmn"):
        before = scores(tmp_path / f"{model}-a.zarr", graph, name, model)[asked]
        after = scores(tmp_path / f"{model}-b.zarr", changed, name, model)[asked]
        seen[model] = (np.abs(before - after).max(1) > 1e-6).tolist()
    assert seen == {"mpnn": [False] * GRAPHS, "gmn": [True] * GRAPHS}
