"""`gmn-train run --with-control`: the run's message passing alone, beside it, resumable, in summary and report."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.config import identity
from gmn_pipeline.errors import ConfigError
from gmn_train.model.tables import CONTROL
from gmn_train.report import write_report
from gmn_train.runs.control import as_long_as, control_of, find_controls
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.start import start_runs
from gmn_train.runs.watching.display import RunHeader, Watcher
from gmn_train.runs.watching.outcome import report_runs
from gmn_train.settings.run_settings import TrainConfig
from tests.stores import ring_graph, write_store
from tests.train.small_runs import SMALL, settings_for

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainConfig:
    monkeypatch.chdir(tmp_path)
    store = write_store(tmp_path / "ring.zarr", ring_graph(40, 40), TokenSettings(2, 2, 1))
    return settings_for(store, epochs=4, checkpoint_seconds=0, threads=1)


class DieInControl(Watcher):
    """Presses Ctrl-C in the control's third epoch."""

    def start(self, header: RunHeader) -> None:
        self.model = header.config.model.name

    def step(self, epoch: int, step: int, steps: int) -> None:  # noqa: ARG002
        if self.model == CONTROL and epoch == 2:
            raise KeyboardInterrupt


def test_a_run_and_its_two_controls(ring: TrainConfig, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = Path("mine")
    with pytest.raises(KeyboardInterrupt):
        start_runs(ring, DieInControl(), run_dir=run_dir, with_control=True)
    assert RunFolder(run_dir).summary() is not None
    stopped = RunFolder(Path("mine-control"))
    assert [row["epoch"] for row in stopped.metrics()] == [0, 1]
    before = stopped.metrics()

    (run,) = start_runs(ring, Watcher(), run_dir=run_dir, with_control=True)
    assert run.existed
    assert stopped.metrics()[:2] == before  # it went on, and did not begin again
    epochs, seconds = run.controls["equal epochs"], run.controls["equal seconds"]
    assert (epochs.path, seconds.path) == (Path("mine-control"), Path("mine-control-seconds"))
    assert {control.summary["model"] for control in run.controls.values()} == {"mpnn"}
    assert epochs.summary["epochs"] == 4
    planned = int(run.summary["seconds"] / (epochs.summary["seconds"] / 4))
    assert seconds.summary["epochs"] == max(planned, 1)
    same = identity(RunFolder(run_dir).config(), without=("model.name", "model.token_blocks", "model.node_scan"))
    assert same == {key: identity(RunFolder(epochs.path).config()).get(key) for key in same}
    (again,) = start_runs(ring, Watcher(), run_dir=run_dir, with_control=True)
    assert all(control.existed for control in again.controls.values())

    report_runs([run], as_json=False)
    text = capsys.readouterr().out
    assert "beside its control" in text
    assert "mpnn, equal seconds" in text
    report_runs([run], as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["controls"]["equal seconds"]["test"] == seconds.summary["test"]
    page = write_report([run_dir], None).read_text()
    assert "Beside its control" in page
    assert "message passing alone, equal seconds" in page


def test_a_control_trains_as_many_epochs_as_its_run_did(ring: TrainConfig) -> None:
    """A run that stopped early: its controls do not stop early themselves."""
    early = replace(ring, epochs=40, patience=2, eval_every=1, lr=1e-9)
    (run,) = start_runs(early, Watcher(), run_dir=Path("mine"), with_control=True)
    assert run.summary["epochs"] < 40
    equal = run.controls["equal epochs"]
    assert equal.summary["epochs"] == run.summary["epochs"] == RunFolder(equal.path).config().epochs
    later = RunFolder(run.controls["equal seconds"].path)
    assert later.config().patience == 0
    assert run.controls["equal seconds"].summary["epochs"] == later.config().epochs


def test_controls_of_several_seeds_lie_in_folders_of_their_own(
    ring: TrainConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = start_runs(replace(ring, epochs=1), Watcher(), seeds=[0, 1], with_control=True)
    assert len({control.path for run in runs for control in run.controls.values()} | {run.path for run in runs}) >= 4
    assert all(find_controls(run.path).keys() == {"equal epochs", "equal seconds"} for run in runs)
    report_runs(runs, as_json=False)
    assert "mpnn, equal epochs" in capsys.readouterr().out


def test_equal_seconds_are_counted_by_the_controls_own_pace(ring: TrainConfig) -> None:
    beside = {"seconds": 2.0, "epochs": 4}
    assert as_long_as(ring, {"seconds": 10.1}, beside).epochs == 20
    assert as_long_as(ring, {"seconds": 0.1}, beside).epochs == 1


def test_a_model_without_a_control_is_refused(ring: TrainConfig) -> None:
    for model, line in (
        (replace(SMALL, name="gcn"), "gcn has no control of its own"),
        (SMALL.changed(name=CONTROL, token_blocks="none", node_scan=False), "mpnn has no control of its own"),
        (SMALL.changed(name="gmn-no-mpnn", mpnn="none", node_scan=True), "at these settings has no control"),
    ):
        with pytest.raises(ConfigError, match=line):
            control_of(replace(ring, model=model))
