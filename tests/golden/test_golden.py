"""Stores and trained weights are the recorded bits; on an unknown processor stores are, and results are near.

A change that is meant to change them is recorded with `python -m tests.golden.record`, and says so.
"""

import json
from pathlib import Path

import pytest
import torch

from gmn_train.model.tables import MODELS
from tests.golden import cases
from tests.golden.cases import RUNS, STORES
from tests.golden.record import FILE, make_store, processor, run_result, store_digest

GOLDEN = json.loads(FILE.read_text())
HERE = GOLDEN["processors"].get(processor())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden")
    for name in STORES:
        make_store(path, name)
    return path


def test_every_model_has_a_run() -> None:
    assert {*cases.MODELS, "gmn-paper"} == set(MODELS)  # which has one of its own


@pytest.mark.parametrize("name", STORES)
def test_store_bytes(folder: Path, name: str) -> None:
    assert store_digest(folder / f"{name}.zarr", portable=True) == GOLDEN["stores"][name]
    if HERE is not None:
        assert store_digest(folder / f"{name}.zarr", portable=False) == HERE["stores"][name]


@pytest.mark.parametrize("name", RUNS)
def test_final_weights(folder: Path, name: str) -> None:
    threads = torch.get_num_threads()
    try:
        found = run_result(folder, name)
    finally:
        torch.set_num_threads(threads)
    values = found.pop("values")
    if HERE is not None:
        assert found == HERE["runs"][name]
    assert values == pytest.approx(GOLDEN["values"][name], rel=0.02)
