"""Small searches for tests: a store of forty nodes, tiny models, a few trials."""

from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline import Graph, TokenSettings
from gmn_pipeline.graph import TEST
from gmn_train.search.budget import TimeBudget
from gmn_train.search.progress import SearchDisplay
from gmn_train.search.proposal import Proposals
from gmn_train.search.searching import SearchOutcome, search
from gmn_train.search.study import SearchStudy
from gmn_train.settings.request import Request, read_request
from tests.stores import ring_graph, write_store

TINY = {"model.width": 8, "model.states": 2, "model.node_layers": 2, "threads": 1, "epochs": 3}
OVER = ("model.name", "lr", "model.dropout", "m")


def write_ring(path: Path, graph: Graph | None = None) -> Path:
    return write_store(path, graph or ring_graph(40, 40), TokenSettings(2, 2, 1)).path


def with_shuffled_test_labels(graph: Graph) -> Graph:
    """The same graph with the labels of split 0's test items permuted."""
    assert graph.splits is not None
    assert graph.y is not None
    y, test = graph.y.copy(), np.flatnonzero(graph.splits[0] == TEST)
    y[test] = np.roll(y[test], 1)
    assert (y != graph.y).any()
    return graph.replace(y=y)


def tiny_request(store: Path, **settings: Any) -> Request:
    return read_request({"store": store, **TINY, **settings})


def small_search(
    request: Request, trials: int = 6, display: SearchDisplay | None = None, **options: Any
) -> SearchOutcome:
    budget = TimeBudget(3600.0)
    return search(
        request, budget, display or SearchDisplay("nothing", budget), command="gmn-train search",
        **{"over": OVER, "trials": trials, "name": "s", **options},
    )  # fmt: skip


def open_study(request: Request, found: SearchOutcome) -> SearchStudy:
    """The study that a search has left."""
    return SearchStudy.load(found.folder, Proposals.of(request, OVER))


def trials_of(study: SearchStudy) -> list[dict[str, Any]]:
    """What each trial tried and gave."""
    return [
        {"params": t.params, "value": t.value, "by epoch": t.intermediate_values, "state": t.state.name}
        for t in study.study.trials
    ]
