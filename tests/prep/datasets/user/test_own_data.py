"""Every case of `table_cases` and `array_cases`: what is understood, what is noted, or the line it ends with."""

import shutil
from pathlib import Path
from types import FunctionType

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from gmn_pipeline.errors import DatasetError
from gmn_prep.datasets import DatasetOptions, dataset_identity, load_dataset
from gmn_prep.understood import describe_graph
from tests.prep.datasets.user.array_cases import ARRAYS, PYG, torch
from tests.prep.datasets.user.table_cases import TABLES

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
CASES = [("table", case) for case in TABLES] + [("npz", case) for case in ARRAYS] + [("pt", case) for case in PYG]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet" and isinstance(content, dict):
        parquet.write_table(pa.table(content), path)
    elif path.suffix == ".npz":
        np.savez(path, **content)
    elif isinstance(content, str | bytes):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    else:
        torch.save(content() if isinstance(content, FunctionType) else content, path)


def test_there_are_more_than_a_hundred():
    assert len(CASES) >= 100
    assert len({(kind, title) for kind, (title, *_) in CASES}) > 0.9 * len(CASES)


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[f"{kind}: {case[0]}" for kind, case in CASES])
def test_own_data(tmp_path, monkeypatch, case):
    _, files, told, lines = case
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        write(tmp_path / name, content)
    told = dict(told)
    name = told.pop("dataset", next(iter(files)))
    if "node_table" in told:
        told["node_table"] = Path(told["node_table"])
    options = DatasetOptions(**told)
    if lines[0].startswith("error: "):
        with pytest.raises(DatasetError) as caught:
            load_dataset(name, options)
        message = str(caught.value)
        assert "\n" not in message
        assert len(message) < 600
        assert lines[0].removeprefix("error: ") in message
        return
    loaded = load_dataset(name, options)
    printed = "\n".join([*loaded.notices, *describe_graph(loaded.graph.check())])
    for line in lines:
        assert line in printed
    identity = dataset_identity(name, options)
    monkeypatch.chdir(shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}-moved")))
    assert dataset_identity(name, options) == identity, "it depends on where files lie"
