"""Weights that are not finite: told in one line wherever scores are made; scikit-learn would end in a traceback."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.cli import run_app
from gmn_train.cli import app
from tests.stores import ring_graph, write_store
from tests.train.small_runs import settings_for, train_in


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38])
def test_it_is_told_in_one_line(value: float, tmp_path: Path, capsys: Any) -> None:
    store = write_store(tmp_path / "a.zarr", ring_graph(), TokenSettings(1, 1, 1))
    train_in(settings_for(store, epochs=1, mode="full"), tmp_path / "r")
    best = tmp_path / "r" / "checkpoints" / "best.safetensors"
    weights = load_file(best)
    save_file({k: torch.full_like(v, value) if k.startswith("head.") else v for k, v in weights.items()}, best)
    run = str(tmp_path / "r")
    for command in (["evaluate", run], ["predict", run, "--out", str(tmp_path / "p.csv")]):
        with pytest.raises(SystemExit) as end:
            run_app(app, command)
        said = capsys.readouterr().err
        assert end.value.code == 2, command
        assert said.count("error:") == 1
        assert "scores are NaN or infinite" in said
    assert not (tmp_path / "p.csv").exists()
    with pytest.raises(SystemExit) as end:
        run_app(app, ["report", run])
    assert end.value.code == 0  # the page says what it could not compute
