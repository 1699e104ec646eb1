"""A bad argument is answered before torch, scikit-learn or Numba are imported: in well under half a second."""

import subprocess
import sys
from pathlib import Path

from gmn_pipeline import TokenSettings
from tests.stores import ring_graph, write_store

CODE = """
import sys
from gmn_pipeline.console.cli import run_app
from gmn_train.cli import app
for line in sys.argv[1:]:
    try:
        run_app(app, line.split())
    except SystemExit as end:
        print(end.code, [name for name in ("torch", "sklearn", "numba") if name in sys.modules])
"""
MISTAKES = (
    "run",
    "run --store nowhere.zarr",
    "run --store s.zarr --set model.wdth=3",
    "run --store s.zarr --lr 0.1 --set lr=0.2",
    "run --store s.zarr --model mpnn --set model.node_scan=true",
    "run --store s.zarr --m 7",
    "run --store s.zarr --seeds a",
)


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    write_store(tmp_path / "s.zarr", ring_graph(12, 6), TokenSettings(1, 1, 1))
    done = subprocess.run(
        [sys.executable, "-c", CODE, *MISTAKES], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["2 []"] * len(MISTAKES), done.stderr
