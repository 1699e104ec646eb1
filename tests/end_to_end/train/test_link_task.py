"""`gmn-prep tokenize --task link`: a store of its own, on a graph without the links it asks for."""

import json
from pathlib import Path

import numpy as np

from gmn_pipeline import TokenStore
from tests.end_to_end.commands import run, tree

GRID = ("tokenize", "--dataset", "minesweeper-grid", "--nodes", 400, "--m", 2, "--M", 2, "--s", 1)


def test_link_store(tmp_path: Path) -> None:
    assert run("gmn-prep", *GRID, "--quiet", cwd=tmp_path).returncode == 0
    done = run("gmn-prep", *GRID, "--task", "link", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["store"] == "data/minesweeper-grid-link.zarr"
    assert facts["notices"][0].startswith("links: ")
    store = TokenStore.open(tmp_path / facts["store"])
    assert (store.graph.task.item, store.graph.task.metric) == ("link", "roc_auc")
    asked = {frozenset(pair) for pair, label in zip(store.graph.pairs.tolist(), store.graph.y, strict=True) if label}
    batch = store.view().gather(np.arange(store.num_nodes))
    for token in range(batch.node_ptr.size - 1):  # no token shows a link that is asked for
        nodes = batch.nodes[batch.node_ptr[token] : batch.node_ptr[token + 1]]
        ends = nodes[batch.edges[batch.edge_ptr[token] : batch.edge_ptr[token + 1]]]
        assert not asked & {frozenset(pair) for pair in ends.tolist()}

    before = tree(tmp_path / "data")
    again = json.loads(run("gmn-prep", *GRID, "--task", "link", "--json", cwd=tmp_path).stdout)
    assert (again["made"], again["fingerprint"]) == (False, facts["fingerprint"])
    assert tree(tmp_path / "data") == before
    other = run("gmn-prep", *GRID, "--task", "link", "--data-seed", 1, cwd=tmp_path)
    assert (other.returncode, "holds other content" in other.stderr) == (2, True)


def test_a_task_that_does_not_fit(tmp_path: Path) -> None:
    done = run("gmn-prep", *GRID, "--task", "graph", cwd=tmp_path)
    assert done.returncode == 2
    assert "--task graph does not fit minesweeper-grid; allowed: node-binary, link" in " ".join(done.stderr.split())
    assert not (tmp_path / "data").exists()
