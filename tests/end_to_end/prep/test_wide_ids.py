"""Ids of eight bytes. No disk here holds a graph of 2^31 nodes, so the border between the types is lowered instead."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gmn_pipeline import TokenStore
from gmn_pipeline.console.config import Layer, load_config
from gmn_pipeline.graph import settle
from gmn_pipeline.store.checking.verify import verify_store
from gmn_prep import large
from gmn_prep.phases import Phases
from gmn_prep.tokenize import tokenize
from gmn_prep.tokenize_settings import TokenizeConfig

SIZES: dict[str, Any] = {"m": 2, "M": 3, "s": 2, "block_size": 200, "ordering": ("degree", "random")}
CASES: dict[str, dict[str, Any]] = {
    "in memory": {"dataset": "minesweeper-grid", "nodes": 900, "rwse": 4, "lap_pe": 3},
    "beyond memory": {"memory": 1.0},
}


def read_all(path: Path) -> dict[str, Any]:
    store = TokenStore.open(path)
    verify_store(store)
    batch = store.view().gather(np.arange(store.num_nodes))
    arrays = {name: getattr(batch, name) for name in ("nodes", "node_ptr", "edges", "edge_ptr", "walks")}
    arrays |= {"indptr": store.graph.indptr, "indices": store.graph.indices}
    for name in store.manifest.orderings:
        arrays |= {f"{name} {part}": values for part, values in store.ordering(name).items()}
    return arrays


@pytest.mark.parametrize("case", CASES)
def test_wide_ids_give_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    settings = {**SIZES, **CASES[case]}
    if "memory" in settings:
        pytest.importorskip("duckdb")
        monkeypatch.setattr(large.MemoryBudget, "pages", 1 << 10)  # so that walks are taken in the order of the graph
        monkeypatch.setattr(large.MemoryBudget, "span", 1 << 19)
        edges = np.random.default_rng(0).integers(0, 900, (4000, 2))
        np.savetxt(tmp_path / "e.csv", edges, "%d", ",", header="src,dst", comments="")
        settings["dataset"] = str(tmp_path / "e.csv")

    def make(name: str) -> dict[str, Any]:
        tokenize(load_config(TokenizeConfig, Layer("test", {**settings, "out": tmp_path / name})), Phases())
        return read_all(tmp_path / name)

    narrow = make("narrow.zarr")
    monkeypatch.setattr(settle, "INT32_MAX", 100)
    wide = make("wide.zarr")
    for name, values in narrow.items():
        np.testing.assert_array_equal(wide[name], values, err_msg=name)
    ids = ["nodes", "indices", "degree permutation", "degree ranks", "random permutation", "random ranks"]
    assert [narrow[name].dtype for name in ids] == [np.int32] * len(ids)
    assert [wide[name].dtype for name in ids] == [np.int64] * len(ids)
