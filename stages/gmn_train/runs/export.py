"""`gmn-train predict` and `gmn-train evaluate`: a run's best weights on its own store or another."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.disk.atomic_file import write_output
from gmn_pipeline.errors import TrainError
from gmn_pipeline.store.reader import TokenStore
from gmn_pipeline.types import Array
from gmn_train.data.labelled import LabelledData
from gmn_train.data.samplers import Sampler, make_sampler
from gmn_train.learning.evaluation import evaluate_parts
from gmn_train.learning.metrics import predicted_classes
from gmn_train.learning.predictions import predict_items
from gmn_train.machine.compute import Compute, use_threads
from gmn_train.model.frame import GraphModel
from gmn_train.runs.checkpoint import Checkpoints
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.start import open_store
from gmn_train.settings.run_settings import TrainConfig
from gmn_train.train import make_model


@dataclass(frozen=True)
class TrainedModel:
    """A run's model at its best epoch, and the store it is to read."""

    config: TrainConfig
    sampler: Sampler
    model: GraphModel
    compute: Compute


def open_best(run: Path, store: Path | None = None, *, need_labels: bool = True) -> TrainedModel:
    """Open a run's best model on its own store or another. TrainError where they do not fit each other."""
    folder = RunFolder(run)
    config = folder.config()
    use_threads(config.threads)
    if store is None:
        opened = open_store(config)
    else:
        opened = TokenStore.open(store)
        config = replace(config, store=store, fingerprint=opened.fingerprint)
    compute = Compute.of(config)
    if compute.precision != config.precision:
        raise TrainError(f"{run} computes in {config.precision}, which does not work on this machine")
    data = LabelledData.open(opened, config, need_labels=need_labels)
    model = make_model(config, data, compute)
    Checkpoints(folder, config).load_best(model)
    return TrainedModel(config, make_sampler(data, config), model, compute)


def evaluate_run(run: Path, store: Path | None) -> dict[str, Any]:
    """The metric of every part at the best epoch."""
    best = open_best(run, store)
    metrics = evaluate_parts(best.sampler, best.model, best.compute, ("train", "val", "test"))
    return {"run": str(run), "metric": best.sampler.data.task.metric, "split": best.config.split, **metrics}


def export_predictions(run: Path, store: Path | None, out: Path, *, embeddings: bool) -> dict[str, Any]:
    """Write item, scores (logits or values), prediction and, if asked, embeddings to .npz or .parquet."""
    if out.suffix not in (".npz", ".parquet"):
        raise TrainError(f"--out is {out}; its ending must be .npz or .parquet")
    best = open_best(run, store, need_labels=False)
    task, steps = best.sampler.data.task, best.sampler.evaluation_steps()
    if embeddings and task.level == "link":
        raise TrainError("embeddings belong to nodes, and a link task predicts pairs; leave out --embeddings")
    items, scores, hidden = predict_items(best.sampler, best.model, best.compute, steps, embeddings=embeddings)
    order = np.argsort(items, kind="stable")
    columns: dict[str, Array] = {"item": items[order], "scores": scores[order]}
    if task.kind != "regression":
        columns["prediction"] = predicted_classes(task, scores[order])
    if hidden is not None:
        columns["embedding"] = hidden[order]
    _write(out, columns)
    return {"file": str(out), "items": len(items), "columns": {n: list(c.shape[1:]) for n, c in columns.items()}}


def _write(out: Path, columns: dict[str, Array]) -> None:
    with write_output(out) as aside:
        if out.suffix == ".npz":
            with aside.open("wb") as file:
                np.savez(file, **columns)  # type: ignore[arg-type]
        else:
            import pyarrow as pa
            from pyarrow import parquet

            arrays = {n: pa.array(list(c)) if c.ndim > 1 else pa.array(c) for n, c in columns.items()}
            parquet.write_table(pa.table(arrays), aside)
