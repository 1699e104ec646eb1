"""The space of a search: what is drawn means something, what the user gives stays, and it is data alone."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import optuna
import pytest

from gmn_pipeline import Graph, Task, TokenSettings
from gmn_pipeline.errors import ConfigError
from gmn_train.search.budget import TimeBudget, parse_duration
from gmn_train.search.proposal import Proposals
from gmn_train.search.space import DIMENSIONS, STARTS, Choice, Dimension
from gmn_train.settings.request import read_request
from tests.stores import write_store
from tests.train.search.small_searches import tiny_request, write_ring


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_ring(tmp_path_factory.mktemp("space") / "a.zarr")


def test_the_space_needs_neither_torch_nor_optuna() -> None:
    code = "import gmn_train.search.proposal, sys; assert not {'torch', 'optuna'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_dimension_is_a_setting_whose_values_it_takes(store: Path) -> None:
    proposals = Proposals.of(tiny_request(store))
    for dimension in proposals.dimensions:
        values = dimension.values_for(proposals.manifest)
        for value in values.values if isinstance(values, Choice) else (values.low, values.high):
            beside = {"model.node_scan": {"model.mpnn": "gcn"}, "model.token_blocks": {"model.node_scan": True}}
            proposals.request({dimension.name: value, **beside.get(dimension.name, {})})


def test_the_control_draws_nothing_of_tokens(store: Path) -> None:
    proposals = Proposals.of(tiny_request(store))
    with_tokens = proposals.parameters({"model.name": "gmn"})
    control = proposals.parameters({"model.name": "mpnn"})
    assert {"m", "M", "model.encoder", "model.readout", "model.node_scan"} <= set(with_tokens) - set(control)
    assert {"lr", "model.dropout", "model.mpnn"} <= set(control)
    assert proposals.dimensions[0].name == "model.name"


def test_what_the_user_gives_is_fixed(store: Path) -> None:
    proposals = Proposals.of(tiny_request(store, lr=0.123, **{"model.token_blocks": "input"}))
    assert not {"lr", "model.width", "model.token_blocks"} & {d.name for d in proposals.dimensions}
    assert proposals.request({"model.name": "gmn"}).config.lr == 0.123
    control = proposals.request({"model.name": "mpnn"}).config  # token_blocks would undo it
    assert (control.lr, control.model.token_blocks) == (0.123, "none")
    fixed = Proposals.of(tiny_request(store, **{"model.name": "gcn"}))
    assert not fixed.compares
    assert "model.mpnn" not in fixed.parameters({})


def test_a_value_of_the_plain_run_is_in_the_space(store: Path) -> None:
    proposals = Proposals.of(tiny_request(store))
    assert proposals.base["model.dropout"] == proposals.parameters({})["model.dropout"]
    assert [start.name for start, _ in proposals.starts()] == list(STARTS)


def test_the_control_starts_from_its_own_defaults(tmp_path: Path) -> None:
    """What the rule gives GMN alone, such as hidden feature values, is no part of the control's start."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(
        rng.integers(0, 2600, (5000, 2)),
        2600,
        x=rng.random((2600, 40), np.float32),
        y=rng.integers(0, 3, 2600),
        splits=np.repeat([1, 2, 3], [2200, 200, 200])[None],
        task=Task.of("node", "multiclass", 3),
    )
    wide = write_store(tmp_path / "wide.zarr", graph, TokenSettings(1, 1, 1), block_size=1000)
    starts = {start.name: params for start, params in Proposals.of(read_request({"store": wide.path})).starts()}
    assert starts["defaults"]["model.input_dropout"] == 0.5
    assert starts["control"]["model.input_dropout"] == 0.0


def test_a_default_of_zero_is_tried_as_the_lowest_of_a_logarithmic_range(store: Path) -> None:
    recipe = store.with_name("no-decay.toml")
    recipe.write_text("[train]\nweight_decay = 0.0\n")
    proposals = Proposals.of(tiny_request(store, recipe=str(recipe)))
    assert proposals.base["weight_decay"] == 0.0
    study = optuna.create_study()
    study.enqueue_trial(proposals.parameters({}))
    assert proposals.draw(study.ask())["weight_decay"] == 1e-6


def test_a_model_that_is_the_control_in_all_but_name_is_refused(store: Path) -> None:
    proposals = Proposals.of(tiny_request(store))
    with pytest.raises(ConfigError, match="it is the control"):
        proposals.request({"model.name": "gmn", "model.token_blocks": 2, "model.node_scan": False})


def test_mistakes_are_told(store: Path) -> None:
    with pytest.raises(ConfigError, match=r"--over names 'lrr', which is not searched; did you mean 'lr'"):
        Proposals.of(tiny_request(store), ("lrr",))
    with pytest.raises(ConfigError, match="--over names lr, and the command fixes it"):
        Proposals.of(tiny_request(store, lr=0.1), ("lr",))
    with pytest.raises(ConfigError, match=r"--budget is 'soon'; write a time such as 30m"):
        parse_duration("soon")
    assert [parse_duration(text) for text in ("45s", "30m", "1h30m", "1.5h")] == [45.0, 1800.0, 5400.0, 5400.0]


def test_a_dimension_can_be_added(store: Path, search_tables_as_before: None) -> None:  # noqa: ARG001
    DIMENSIONS.add(Dimension("clip", "how far a step may go", Choice(0.0, 1.0)))
    assert "clip" in Proposals.of(tiny_request(store)).parameters({})
    DIMENSIONS.add(Dimension("clipp", "", Choice(0.0, 1.0)))
    with pytest.raises(ConfigError, match="the search dimension 'clipp' is no setting; did you mean 'clip'"):
        Proposals.of(tiny_request(store))


def test_epochs_shrink_until_the_budget_holds_enough_runs() -> None:
    assert TimeBudget(2400.0).epochs(200, 1.0) == 100
    assert TimeBudget(2400.0).epochs(50, 1.0) == 50
    assert TimeBudget(24.0).epochs(50, 1.0) == 3
    assert TimeBudget(24.0).epochs(50, None) == 50
