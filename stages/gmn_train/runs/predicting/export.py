"""`gmn-train predict` and `gmn-train evaluate`: a run's best weights on its own store or another."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gmn_pipeline.errors import TrainError
from gmn_pipeline.place import StorePlace
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_pipeline.types import IntArray
from gmn_train.data.labelled import LabelledData
from gmn_train.data.samplers import Sampler, make_sampler
from gmn_train.data.trained_on import TrainedOn
from gmn_train.learning.evaluation import evaluate_parts
from gmn_train.learning.predictions import predict_items
from gmn_train.machine.compute import Compute, use_threads
from gmn_train.model.frame import GraphModel
from gmn_train.runs.checkpoint import Checkpoints
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.naming import check_ending
from gmn_train.runs.predicting.prediction_table import PredictionTable
from gmn_train.runs.refusals import check_embeddings
from gmn_train.runs.start import open_store
from gmn_train.settings.request import on_another_store
from gmn_train.settings.run_settings import TrainConfig
from gmn_train.train import make_model


@dataclass(frozen=True)
class TrainedModel:
    """A run's model at its best epoch, and the store it is to read."""

    config: TrainConfig
    sampler: Sampler
    model: GraphModel
    compute: Compute


def open_best(
    run: Path, store: StorePlace | None = None, *, pairs: IntArray | None = None, need_labels: bool = True
) -> TrainedModel:
    """Open a run's best model on its own store or another. TrainError where they do not fit each other.

    Task, classes, columns and scaling are the run's. pairs: (K, 2) node ids to predict instead of the store's.
    """
    folder = RunFolder(run)
    config = folder.config()
    use_threads(config.threads)
    if store is None:
        opened = open_store(config)
    else:
        opened = TokenStore.open(store)
        config = on_another_store(config, store, opened.manifest)
    compute = Compute.of(config)
    if compute.precision != config.precision:
        raise TrainError(f"{run} computes in {config.precision}, which does not work on this machine")
    trained_on = TrainedOn.load(folder.path)
    data = LabelledData.open(opened, config, trained_on=trained_on, pairs=pairs, need_labels=need_labels)
    model = make_model(config, data, compute)
    Checkpoints(folder, config).load_best(model)
    return TrainedModel(config, make_sampler(data, config), model, compute)


def evaluate_run(run: Path, store: StorePlace | None) -> dict[str, Any]:
    """The metric of every part at the best epoch."""
    best = open_best(run, store)
    metrics = evaluate_parts(best.sampler, best.model, best.compute, ("train", "val", "test"))
    return {"run": str(run), "metric": best.sampler.data.task.metric, "split": best.config.split, **metrics}


def predict_run(
    run: Path, store: StorePlace | None, *, embeddings: bool = False, pairs: IntArray | None = None
) -> PredictionTable:
    """A run's predictions for every item of a store, or for the pairs that `read_pairs_for` gave."""
    best = open_best(run, store, pairs=pairs, need_labels=False)
    task, steps = best.sampler.data.task, best.sampler.evaluation_steps()
    if embeddings:
        check_embeddings(task)
    items, scores, hidden = predict_items(best.sampler, best.model, best.compute, steps, embeddings=embeddings)
    return PredictionTable.of(best.sampler.data, best.config.split, items, scores, hidden)


def export_predictions(
    run: Path, store: StorePlace | None, out: Path, *, embeddings: bool = False, pairs: IntArray | None = None
) -> dict[str, Any]:
    """Write a run's predictions to .npz, .parquet or .csv."""
    check_ending(out)
    table = predict_run(run, store, embeddings=embeddings, pairs=pairs)
    table.write(out)
    return {"file": str(out), "items": len(table), "columns": table.column_names(), "notes": table.notes}
