"""A search: it starts from defaults and control, never sees test, goes on where it stopped, and its recipe works."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gmn_pipeline.console.config import identity
from gmn_pipeline.errors import TrainError
from gmn_train.runs.folder import RunFolder
from gmn_train.search.budget import TimeBudget
from gmn_train.search.progress import SearchDisplay
from gmn_train.search.trial_run import trial_folder
from gmn_train.settings.request import read_request
from tests.stores import ring_graph
from tests.train.search.small_searches import (
    TINY,
    open_study,
    small_search,
    tiny_request,
    trials_of,
    with_shuffled_test_labels,
    write_ring,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_search_ends_with_a_recipe_that_repeats_what_it_chose() -> None:
    request = tiny_request(write_ring(Path("a.zarr")))
    found = small_search(request)
    study = open_study(request, found)
    verdict = found.verdict
    assert verdict is not None
    assert verdict.control is not None
    assert len(verdict.control.repeats) == 3
    starts = [t for t in study.study.trials if "start" in t.user_attrs]
    assert [t.user_attrs["start"] for t in starts[:4]] == ["defaults", "control", "masked", "masked control"]
    assert {t.state.name for t in starts} == {"COMPLETE"}  # none was cut short

    assert found.recipe is not None
    text = found.recipe.read_text()
    assert f"# {sum(found.trials.values())} trials of 3 epochs: " in text
    assert verdict.line in text
    asked = read_request({"store": request.config.store, "recipe": str(found.recipe), "threads": 1})
    assert asked.measured is not None
    assert "by `gmn-train search`" in asked.measured
    drawn = study.settings_of(study.study.trials[verdict.chosen.number])
    wanted = study.proposals.request(drawn, epochs=3).config
    assert identity(asked.config) == identity(wanted)

    assert found.page is not None
    page = found.page.read_text()
    assert "<svg" in page
    assert verdict.line.split(":")[0] in page
    assert [row for run in runs_of(found.folder) for row in run.metrics() if "test" in row] == []


def runs_of(folder: Path) -> list[RunFolder]:
    runs = [RunFolder(file.parent) for part in ("trials", "repeats") for file in (folder / part).glob("*/config.toml")]
    assert runs
    return runs


def test_labels_of_test_items_change_nothing(here: Path) -> None:
    studies = []
    for name, graph in (("a", ring_graph(40, 40)), ("b", with_shuffled_test_labels(ring_graph(40, 40)))):
        request = tiny_request(write_ring(here / f"{name}.zarr", graph))
        found = small_search(request, 6, name=name)
        study = open_study(request, found)
        repeats = {key: value for key, value in study.study.user_attrs.items() if key.startswith("repeat")}
        assert found.recipe is not None
        studies.append((trials_of(study), repeats, tomllib.loads(found.recipe.read_text())))
    assert studies[0] == studies[1]
    assert len(studies[0][0]) >= 6


class InterruptedDisplay(SearchDisplay):
    """Presses Ctrl-C in the second epoch of trial 1."""

    def follow(self, what: str, epochs: int):  # type: ignore[no-untyped-def]  # noqa: ARG002
        def after(epoch: int, value: float) -> None:  # noqa: ARG001
            if what.startswith("trial 1,") and epoch == 2:
                raise KeyboardInterrupt

        return after


def test_ctrl_c_leaves_what_stands_and_the_trial_goes_on_later() -> None:
    request = tiny_request(write_ring(Path("a.zarr")), checkpoint_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        small_search(request, display=InterruptedDisplay("nothing", TimeBudget(60.0)))
    folder = Path("data/searches/s")
    assert "# Control, its best: not tried" in (folder / "recipe.toml").read_text()
    left = [run for run in runs_of(folder) if run.last.exists()]
    assert len(left) == 1  # the interrupted one alone keeps its checkpoint
    before = left[0].metrics()

    found = small_search(request, 5)
    study = open_study(request, found)
    states = [trial.state.name for trial in study.study.trials]
    assert states[:2] == ["COMPLETE", "FAIL"]
    assert "WAITING" not in states
    again = next(t for t in study.study.trials[2:] if t.params == study.study.trials[1].params)
    assert again.state.name == "COMPLETE"
    assert again.user_attrs["start"] == "control"
    assert left[0].metrics()[0] == before[0]  # seconds and all: the epoch was not run again


DIES = """
import os, sys
from pathlib import Path
from gmn_train.search.proposal import Proposals
from gmn_train.search.study import SearchStudy
from gmn_train.settings.request import read_request
from tests.train.search.small_searches import OVER, TINY
request = read_request({"store": Path(sys.argv[1]), **TINY})
study = SearchStudy.load(Path("data/searches/s"), Proposals.of(request, OVER))
study.proposals.draw(study.ask())
os._exit(9)
"""


def test_a_trial_of_a_killed_process_is_tried_again(here: Path) -> None:
    request = tiny_request(write_ring(here / "a.zarr"))
    small_search(request, 1)
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", DIES, "a.zarr"], check=False, env={**os.environ, "PYTHONPATH": root}, cwd=here
    )
    assert done.returncode == 9
    found = small_search(request, 2)
    study = open_study(request, found)
    killed = next(t for t in study.study.trials if t.state.name == "FAIL")
    assert [t.state.name for t in study.study.trials if t.params == killed.params][1] in ("COMPLETE", "PRUNED")
    assert study.trials("RUNNING") == []
    with pytest.raises(TrainError, match="the study s was made with other settings"):
        small_search(tiny_request(request.config.store, weight_decay=0.1), 1)


def test_storages_are_shared_by_url_or_journal_and_fail_in_one_line(here: Path) -> None:
    request = tiny_request(write_ring(here / "a.zarr"))
    journal = small_search(request, 1, storage=f"journal:{here / 'shared.log'}", name="j")
    assert journal.trials["COMPLETE"] >= 1
    assert not (journal.folder / "study.db").exists()
    with pytest.raises(TrainError, match="the study's storage nonsense fails: "):
        small_search(request, 1, storage="nonsense", name="n")


def test_what_cannot_be_trained_is_told_before_anything_is_written(here: Path) -> None:
    store = write_ring(here / "a.zarr", ring_graph(40, 40).replace(y=None, splits=None, task=None))
    with pytest.raises(TrainError, match="has no labels"):
        small_search(tiny_request(store), 1)
    assert not Path("data").exists()


def test_a_trial_on_several_splits_counts_by_the_mean_of_their_validations() -> None:
    store = write_ring(Path("a.zarr"))  # has two splits
    request = tiny_request(store)
    found = small_search(request, trials=4, splits=(0, 1))
    study = open_study(request, found)
    settings = study.settings_of(study.study.trials[0])
    values = []
    for split in (0, 1):
        config = read_request({"store": store, **TINY, **settings, "split": split}).config
        summary = RunFolder(trial_folder(found.folder / "trials", config)).summary()
        assert summary is not None
        values.append(summary["val"])
    assert study.study.trials[0].value == pytest.approx(sum(values) / 2)
    assert found.recipe is not None
    assert "each on splits 0, 1 and counted by their mean" in found.recipe.read_text()
    assert found.verdict is not None
    assert len(found.verdict.chosen.repeats) == 3  # further seeds, on both splits as well
    assert len(list((found.folder / "repeats").iterdir())) % 2 == 0
