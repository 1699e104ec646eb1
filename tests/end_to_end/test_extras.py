"""Extras are imported only by those who ask for them: a plain installation has none, and each takes its time."""

import sys
from pathlib import Path
from typing import Any

import pytest

from gmn_pipeline.console.cli import run_app
from gmn_prep.cli import app as prep
from gmn_train.cli import app as train
from tests.end_to_end.commands import run

EXTRAS = ("obstore", "distributed", "dask", "duckdb", "optuna", "moto")
OWN = ("gmn_pipeline.store.objects", "gmn_prep.parts.dask_map", "gmn_train.search")
"""Rooms and files of ours that are about an extra."""
TOKENIZE = "tokenize --dataset minesweeper-grid --nodes 400 --m 1 --M 2 --s 1 --quiet --out s.zarr"
TRAIN = "run --store s.zarr --epochs 1 --set model.width=8 --set model.states=2 --quiet"


def look_for_extras() -> None:
    """In a process of its own: print what each command has imported."""
    calls: tuple[tuple[Any, str], ...] = ((prep, TOKENIZE), (prep, "inspect s.zarr"), (train, TRAIN))
    for app, line in calls:
        with pytest.raises(SystemExit) as end:
            run_app(app, line.split())
        assert not end.value.code, line
        found = [name for name in sys.modules if name.split(".")[0] in EXTRAS or name.startswith(OWN)]
        print(f"{line.split()[0]} has imported {sorted(found)}")


def test_plain_commands_import_no_extra(tmp_path: Path) -> None:
    done = run("tests.end_to_end.test_extras:look_for_extras", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if " has imported " in line]
    assert told == [f"{name} has imported []" for name in ("tokenize", "inspect", "run")]
