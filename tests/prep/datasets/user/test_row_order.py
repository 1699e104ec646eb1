"""The order of rows in a table means nothing: nodes are numbered by their ids."""

import csv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_pipeline import TokenSettings
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_prep.orderings import compute_ordering
from gmn_prep.tokens.tokenizer import Tokenizer

NAMES = {"numbers": "{}", "texts": "n{}", "padded": "{:04d}", "large": "{}000000000"}


def write(file: Path, header: list[str], rows: list[list[Any]]) -> Path:
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return file


def tables(rng: np.random.Generator, named: str, many: bool, edge_features: bool) -> list[list[list]]:
    """Rows of edges, nodes and graphs of a random graph, or of three."""
    n = int(rng.integers(3, 14))
    ids = [NAMES[named].format(v) for v in rng.choice(50, n, replace=False)]
    graph = rng.integers(0, 3, n)
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(0, n, (3 * n, 2)) if a < b})
    pairs = [(a, b) for a, b in pairs if not many or graph[a] == graph[b]] or [(0, 0)]
    edges = [[ids[a], ids[b], *([i % 5 + 0.5, -i] if edge_features else [])] for i, (a, b) in enumerate(pairs)]
    again = rng.choice(len(edges), 3)  # some twice or more, with other features
    edges += [[*edges[i][:2], *([rng.choice([0.5, edges[i][2]]), 7 - i] if edge_features else [])] for i in again]
    nodes = [[ids[v], f"{rng.random():.3f}", "ab"[v % 2], *([f"g{graph[v]}"] if many else [])] for v in range(n)]
    return [edges, nodes, [[f"g{g}", ["low", "high"][g % 2]] for g in range(3)] if many else []]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    named=st.sampled_from(list(NAMES)),
    many=st.booleans(),
    edge_features=st.booleans(),
)
def test_shuffled_tables_are_the_same_graph_with_the_same_tokens(
    tmp_path_factory: Any, seed: int, named: str, many: bool, edge_features: bool
) -> None:
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(seed)
    rows = tables(rng, named, many, edge_features)
    results = []
    for shuffle in (False, True):
        if shuffle:
            rows = [[part[i] for i in rng.permutation(len(part))] for part in rows]
            turned = {pair for pair in {(a, b) for a, b, *_ in rows[0]} if rng.random() < 0.5}
            rows[0] = [[b, a, *rest] if (a, b) in turned else [a, b, *rest] for a, b, *rest in rows[0]]
        header, written = ["src", "dst", *(["w", "z"] if edge_features else [])], rows[0]
        if shuffle:
            header, written = header[::-1], [row[::-1] for row in written]
        file = write(folder / "edges.csv", header, written)
        label = "kind" if many else "label"
        write(folder / "nodes.csv", ["id", "size", label, *(["graph"] if many else [])], rows[1])
        if many:
            write(folder / "graphs.csv", ["id", "label"], rows[2])
        graph = load_dataset(str(file), DatasetOptions()).graph
        with ThreadPoolExecutor(1) as pool:
            block = Tokenizer.of(graph, TokenSettings(2, 2, 1)).block(0, graph.num_nodes, pool)
        order = compute_ordering(graph, "degree", seed=0)
        arrays = graph.arrays()
        if edge_features:
            arrays["edge_attr"] = arrays["edge_attr"][:, np.argsort(graph.edge_names)]
        results.append({**arrays, **block.arrays(), **vars(order)})
    first, second = results
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name]), name
