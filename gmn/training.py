"""Stage two from Python: a token store in, a run out; runs are opened again by path or name."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmn_pipeline import TokenStore
from gmn_pipeline.console.streams import tell
from gmn_pipeline.place import StorePlace, as_place
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.watching.display import Display
from gmn_train.runs.watching.display import Watcher as Watcher
from gmn_train.runs.watching.together import Together

if TYPE_CHECKING:
    from gmn_train.model.frame import GraphModel
    from gmn_train.runs.predicting.prediction_table import PredictionTable
    from gmn_train.settings.run_settings import TrainConfig

Place = str | PathLike[str]


@dataclass(frozen=True)
class Run:
    """A run on disk."""

    path: Path

    @property
    def config(self) -> "TrainConfig":
        """The settings it was made with."""
        return RunFolder(self.path).config()

    @property
    def summary(self) -> dict[str, Any] | None:
        """What it found: `test`, `val`, `best_epoch`, `seconds`, ...; None while it is not finished."""
        return RunFolder(self.path).summary()

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """A row per epoch: `epoch`, `loss`, `lr`, `val`, `test`, `seconds`."""
        return RunFolder(self.path).metrics()

    @property
    def model(self) -> "GraphModel":
        """The model at its best epoch, a torch module."""
        from gmn_train.runs.predicting.export import open_best

        return open_best(self.path, need_labels=False).model.eval()

    def predict(
        self,
        store: "TokenStore | Place | None" = None,
        *,
        embeddings: bool = False,
        pairs: Place | None = None,
        quiet: bool = False,
    ) -> "PredictionTable":
        """Predictions for every item of a store, which needs no labels; of the run's own store unless given.

        `table["prediction"]` is a column, `table.columns` all of them, `table.scores` (items, outputs) what the model
        gives; `table.write("predictions.parquet")` writes a file. pairs: a table of node pairs to score instead.
        `table.notes`, also printed to stderr, name columns that the model does not know.
        """
        from gmn_train.runs.predicting.export import predict_run
        from gmn_train.runs.refusals import read_pairs_for

        place = _place(store)
        named = None if pairs is None else read_pairs_for(self.path, place, Path(pairs))
        table = predict_run(self.path, place, embeddings=embeddings, pairs=named)
        for note in () if quiet else table.notes:
            tell(f"note: {note}")
        return table

    def evaluate(self, store: "TokenStore | Place | None" = None) -> dict[str, Any]:
        """The metric on `train`, `val` and `test` at the best epoch."""
        from gmn_train.runs.predicting.export import evaluate_run

        return evaluate_run(self.path, _place(store))

    def report(self, out: Place | None = None) -> Path:
        """Write the run's page; report.html in its folder unless told otherwise."""
        from gmn_train.report import write_report

        return Path(write_report([self.path], _path(out)))

    def resume(
        self,
        *,
        epochs: int | None = None,
        watcher: Watcher | None = None,
        progress: bool = False,
        quiet: bool = False,
    ) -> "Run":
        """Continue an interrupted run, or train a finished one longer, to `epochs` in all."""
        from gmn_train.runs.start import resume_run

        with _display(progress=progress, quiet=quiet) as display:
            resume_run(self.path, _both(display, watcher), epochs=epochs)
        return self


def train(
    store: "TokenStore | Place",
    *,
    model: str | None = None,
    name: str | None = None,
    run_dir: Place | None = None,
    watcher: Watcher | None = None,
    progress: bool = False,
    quiet: bool = False,
    force: bool = False,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> Run:
    """Train a model from a store; a finished run of the same settings is found, an interrupted one continued.

    options: settings of a run, such as `epochs=60`, `lr=0.01`, `seed=1`, `recipe="none"`; all are listed by
    `gmn-train settings`. settings: the same by dotted key, such as `{"model.width": 32}`. model: its name. name,
    run_dir: where the run goes; data/runs/... unless given. watcher: is told of every step and epoch, see `Watcher`.
    progress: show a bar, or lines in a log. Without it only notes are printed, to stderr; quiet: nothing.

    Raises GmnError in one line.
    """
    from gmn_train.runs.start import start_runs
    from gmn_train.settings.request import read_request

    given = {"store": _place(store), "model.name": model, **options, **(settings or {})}
    asked = read_request(given)
    with _display(progress=progress, quiet=quiet) as display:
        if asked.measured:
            display.say(asked.measured)
        done = start_runs(asked.config, _both(display, watcher), name=name, run_dir=_path(run_dir), force=force)
    return Run(done[0].path)


def load_run(run: Place) -> Run:
    """A run by its folder, or by its name in data/runs. Raises TrainError where there is none."""
    from gmn_train.runs.naming import find_run

    path = find_run(run)
    RunFolder(path).config()
    return Run(path)


def list_runs(root: Place = "data/runs") -> list[Run]:
    """All runs in a folder, by path."""
    from gmn_train.runs.naming import runs_in

    return [Run(path) for path in runs_in(Path(root))]


def _display(*, progress: bool, quiet: bool) -> Display:
    return Display.for_person(silent=quiet) if progress or quiet else Display("notes")


def _both(display: Display, watcher: Watcher | None) -> Watcher:
    return display if watcher is None else Together(display, watcher)


def _path(path: Place | None) -> Path | None:
    return None if path is None else Path(path)


def _place(store: "TokenStore | Place | None") -> StorePlace | None:
    return None if store is None else store.path if isinstance(store, TokenStore) else as_place(store)
