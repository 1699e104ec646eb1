"""The report page: made from real runs, complete, self-contained, and honest about what is missing."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from gmn_pipeline import Graph, Task, TokenSettings
from gmn_pipeline.errors import TrainError, WriteError
from gmn_train.learning.metrics import binary_average_precision, by_label, evaluate_metric
from gmn_train.report import write_report
from gmn_train.report.comparison import group_runs
from gmn_train.report.evidence import Evidence, scan_names
from gmn_train.report.facts import curve, find_runs, read_run, short_names, thin_points
from gmn_train.report.task_figures import task_figures
from gmn_train.runs.folder import RunFolder
from gmn_train.settings.model_settings import ModelConfig
from tests.stores import write_store
from tests.train.small_runs import settings_for, train_in

SMALL = ModelConfig(width=8, node_layers=2, states=2)
VOID = {"meta", "br", "img"}


def grid_graph(side: int = 20) -> Graph:
    """A grid with rare positive nodes, their number among the neighbours as feature, and two splits."""
    rng = np.random.default_rng(0)
    at = np.arange(side * side).reshape(side, side)
    edges = np.concatenate([np.stack([at[:, :-1], at[:, 1:]], -1), np.stack([at[:-1], at[1:]], -1).swapaxes(0, 1)], 1)
    y = (rng.random(side * side) < 0.25).astype(np.int64)
    return Graph.from_edges(
        edges.reshape(-1, 2),
        side * side,
        x=rng.normal(size=(side * side, 3)).astype(np.float32) + y[:, None],
        y=y,
        splits=rng.integers(1, 4, (2, side * side)),
        task=Task.of("node", "binary", 2),
    )


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the store and finished runs: two seeds with tokens, one without."""
    root = tmp_path_factory.mktemp("runs")
    store = write_store(root / "grid.zarr", grid_graph(), TokenSettings(2, 2, 1), block_size=128)
    config = settings_for(store, epochs=3, model=SMALL)
    for name, one in (
        ("full/seed0-split0", config),
        ("full/seed1-split1", replace(config, seed=1, split=1)),
        ("plain/seed0-split0", replace(config, model=config.model.changed(token_blocks="none"))),
    ):
        train_in(one, root / name)
    return root


@pytest.fixture
def own_run(runs: Path, tmp_path: Path) -> Path:
    """A copy of a run to spoil."""
    return shutil.copytree(runs / "full" / "seed0-split0", tmp_path / "own")


class Tags(HTMLParser):
    """Follows a page's tags: what is open, all ids, and everything it would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids += [found["id"]] if "id" in found else []
        self.loads += [value for name, value in found.items() if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(page: str) -> None:
    """Well-formed, ids unique and all found, nothing from outside."""
    tags = Tags(page)
    assert tags.open == []
    assert max(Counter(tags.ids).values(), default=1) == 1
    assert all(load.startswith("data:") or load[1:] in tags.ids for load in tags.loads)
    assert set(re.findall(r"url\(#([\w-]+)\)", page)) <= set(tags.ids)
    assert "@import" not in page
    assert "<script" not in page


def test_one_run(runs: Path, tmp_path: Path) -> None:
    run = runs / "full" / "seed0-split0"
    out = write_report([run], tmp_path / "new" / "page.html")
    page = out.read_text()
    check_page(page)
    summary = RunFolder(run).summary()
    assert summary is not None
    for text in (
        f"{summary['test']:.4f}", f"{summary['val']:.4f}", f"{summary['parameters']:,}",
        summary["store"]["fingerprint"],
        "ROC curve", "Precision and recall", "Confusion matrix, test", "What the token scans select", "after layer 1",
        "model.feature_mask", "m=2 M=2 s=1", "node, binary", summary["versions"]["torch"],
    ):  # fmt: skip
        assert text in page, text
    assert str(runs) not in page, "a page names no machine's folders"
    assert page.count("<svg") == 8
    assert len(page) < 200_000
    assert write_report([run], tmp_path / "again.html").read_text() == page


def test_it_stands_in_the_run_unless_told(own_run: Path) -> None:
    assert write_report([own_run], None) == own_run / "report.html"


def test_several_runs_are_compared(runs: Path) -> None:
    out = write_report([runs / "full", runs / "plain" / "seed0-split0"], None)
    assert out == runs / "report.html"
    page = out.read_text()
    check_page(page)
    for text in ("3 runs compared", "A: token_blocks=between", "B: token_blocks=none", "±", "Settings that differ"):
        assert text in page, text
    assert page.count("What the token scans select") == 2, "a run without token blocks has no selection"


def test_seeds_and_splits_are_spread_apart(runs: Path) -> None:
    paths = find_runs([runs / "full", runs / "plain"])
    full, plain = group_runs([read_run(path, name) for path, name in zip(paths, short_names(paths), strict=True)])
    assert [run.name for run in full.runs] == ["full/seed0-split0", "full/seed1-split1"]
    tests = [run.result.test for run in full.runs]
    for over in ("runs", "seeds", "splits"):
        assert full.spread[over]["count"] == 2
        assert full.spread[over]["mean"] == pytest.approx(np.mean(tests))
        assert full.spread[over]["std"] == pytest.approx(np.std(tests, ddof=1))
    assert plain.spread["runs"]["count"] == 1


def test_recomputed_metrics_are_the_recorded_ones(runs: Path) -> None:
    run = read_run(runs / "full" / "seed1-split1", "run")
    assert run.evidence is not None
    assert run.evidence.metrics["test"] == pytest.approx(run.result.test, abs=1e-6)
    assert run.evidence.deltas is not None
    assert run.evidence.deltas.shape == (1, 3)
    assert (run.evidence.deltas > 0).all()


def test_gone_store_is_said_and_the_rest_shown(own_run: Path) -> None:
    config = own_run / "config.toml"
    config.write_text(re.sub(r'store = ".*"', 'store = "gone/away.zarr"', config.read_text()))
    page = write_report([own_run], None).read_text()
    check_page(page)
    assert "the store away.zarr is not there" in page
    assert page.count("<svg") == 2, "the curves"
    assert "fingerprint" in page


def test_another_store_in_its_place_is_not_used(own_run: Path, tmp_path: Path) -> None:
    other = write_store(tmp_path / "grid.zarr", grid_graph(20), TokenSettings(1, 1, 1))
    config = own_run / "config.toml"
    config.write_text(re.sub(r'store = ".*"', f'store = "{other.path}"', config.read_text()))
    assert "is another one now" in write_report([own_run], None).read_text()


def test_unfinished_run_is_shown_as_such(own_run: Path) -> None:
    (own_run / "summary.json").unlink()
    page = write_report([own_run], None).read_text()
    check_page(page)
    assert "unfinished, 3 epochs so far" in page
    assert read_run(own_run, "own").result.val == max(curve(RunFolder(own_run).metrics(), "val")[1])


def test_unfinished_run_without_store_or_checkpoint(own_run: Path) -> None:
    (own_run / "summary.json").unlink()
    RunFolder(own_run).best.unlink()
    assert "no best checkpoint" in write_report([own_run], None).read_text()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: (run / "metrics.jsonl").unlink(), "has no metrics yet"),
        (lambda run: (run / "config.toml").unlink(), "is not a run folder: it has no config.toml"),
        (lambda run: shutil.rmtree(run), "is not a run folder: it does not exist"),
    ],
)
def test_mistakes_are_one_clear_line(own_run: Path, spoil: Callable[[Path], None], message: str) -> None:
    spoil(own_run)
    with pytest.raises(TrainError, match=message) as caught:
        write_report([own_run], None)
    assert "\n" not in str(caught.value)


def test_unwritable_page(own_run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"cannot write .* choose another place"):
        write_report([own_run], tmp_path / "file" / "page.html")


def test_thousands_of_epochs_stay_a_small_page(own_run: Path) -> None:
    rng = np.random.default_rng(0)
    folder = RunFolder(own_run)
    (own_run / "metrics.jsonl").unlink()
    rows = [{"epoch": i, "loss": float(rng.random()), "val": float(rng.random()), "test": 0.5} for i in range(5000)]
    (own_run / "metrics.jsonl").write_text("".join(f"{row}\n".replace("'", '"') for row in rows))
    assert len(folder.metrics()) == 5000
    assert write_report([own_run], None).stat().st_size < 250_000


def test_thinning_keeps_ends_and_extremes() -> None:
    y = np.random.default_rng(1).random(9000)
    kept = thin_points(y, 100)
    assert len(kept) <= 100
    assert {0, 8999, int(y.argmin()), int(y.argmax())} <= set(kept.tolist())
    assert (thin_points(y[:50], 100) == np.arange(50)).all()


def evidence(task: Task, scores: np.ndarray, y: np.ndarray) -> Evidence:
    parts = {"val": (scores, y), "test": (scores, y)}
    metrics = {part: evaluate_metric(task, *found) for part, found in parts.items()}
    return Evidence(task, parts, metrics, None, [], "", {}, 0)


def test_figures_of_every_kind_of_task() -> None:
    rng = np.random.default_rng(0)
    known = rng.integers(0, 2, (50, 3)).astype(np.float64)
    known[::5, 0], known[:, 2] = np.nan, 0  # unknown labels, and a label that is never true
    scores, many = rng.normal(size=(50, 3)), rng.random((50, 40))
    found = {
        "multiclass": task_figures("a", evidence(Task.of("node", "multiclass", 3), scores, rng.integers(-1, 3, 50))),
        "binary": task_figures("b", evidence(Task.of("graph", "binary", 2), scores[:, :1], rng.integers(-1, 2, 50))),
        "alike": task_figures("c", evidence(Task.of("graph", "binary", 2), scores[:, :1], np.zeros(50, np.int64))),
        "multilabel": task_figures("d", evidence(Task.of("graph", "multilabel", 3), scores, known)),
        "regression": task_figures("e", evidence(Task.of("graph", "regression", 3), scores, known)),
        "classes": task_figures("f", evidence(Task.of("node", "multiclass", 40), many, np.arange(50) % 40)),
    }
    assert {kind: len(figures) for kind, figures in found.items()} == {
        "multiclass": 2, "binary": 4, "alike": 2, "multilabel": 2, "regression": 3, "classes": 2,
    }  # fmt: skip
    check_page("".join(svg for figures in found.values() for _, svg in figures))
    assert np.isnan(by_label(binary_average_precision, scores, known)).tolist() == [False, False, True]


def test_scans_are_named_in_the_order_of_their_deltas() -> None:
    assert scan_names(ModelConfig(node_layers=3)) == ["after layer 1", "after layer 2"]
    assert scan_names(ModelConfig.of("gmn-paper")) == ["input, scan 1", "input, scan 2"]


def test_names_tell_runs_apart() -> None:
    paths = [Path("/x/a/seed0-split0"), Path("/x/b/seed0-split0")]
    assert short_names(paths) == ["a/seed0-split0", "b/seed0-split0"]
    assert short_names([Path("/x/mine")]) == ["mine"]
    assert short_names([Path("/x/y/seed0-split0")]) == ["y/seed0-split0"]
