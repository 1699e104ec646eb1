"""A bad argument is answered before torch, scikit-learn or Numba are imported: in well under half a second."""

import subprocess
import sys
from pathlib import Path

import pytest

from gmn_pipeline import TokenSettings
from tests.stores import ring_graph, write_store

CODE = """
import sys
from gmn_pipeline.console.cli import run_app
from gmn_train.cli import app
try:
    run_app(app, sys.argv[1:])
except SystemExit as end:
    print(end.code, [name for name in ("torch", "sklearn", "numba") if name in sys.modules])
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "--store", "nowhere.zarr"],
        ["run", "--store", "s.zarr", "--set", "model.wdth=3"],
        ["run", "--store", "s.zarr", "--lr", "0.1", "--set", "lr=0.2"],
        ["run", "--store", "s.zarr", "--model", "mpnn", "--set", "model.node_scan=true"],
        ["run", "--store", "s.zarr", "--m", "7"],
        ["run", "--store", "s.zarr", "--seeds", "a"],
    ],
)
def test_nothing_heavy_is_imported(tmp_path: Path, arguments: list[str]) -> None:
    write_store(tmp_path / "s.zarr", ring_graph(12, 6), TokenSettings(1, 1, 1))
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "2 []", done.stderr
