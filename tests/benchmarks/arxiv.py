"""The real ogbn-arxiv graph for benchmarks, or a generated grid of the same size where it is not there."""

from functools import cache

from gmn_pipeline import Graph
from gmn_prep.datasets import DatasetOptions, load_dataset
from tests.benchmarks.timing import data_root


@cache
def arxiv_graph() -> tuple[str, Graph]:
    root = data_root()
    if root is None or not (root / "ogb" / "ogbn_arxiv").exists():
        options = DatasetOptions(nodes=169_343)
        return "grid of 169k nodes (set GMN_DATA_ROOT for ogbn-arxiv)", load_dataset("minesweeper-grid", options).graph
    return "ogbn-arxiv", load_dataset("ogbn-arxiv", DatasetOptions(data_root=root)).graph
