"""`gmn-train predict` and `gmn-train evaluate`: a run's best weights on its own store or another."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.errors import TrainError
from gmn_pipeline.types import Array
from gmn_train.data.session import Session
from gmn_train.learning.evaluation import evaluate_parts
from gmn_train.learning.metrics import predicted_classes
from gmn_train.learning.precision import choose_precision
from gmn_train.learning.predictions import predict_items
from gmn_train.model.frame import GraphModel
from gmn_train.runs.folder import RunFolder


def open_best(run: Path, store: Path | None = None, *, need_labels: bool = True) -> tuple[Session, GraphModel]:
    """A run's model at its best epoch, and the store it is to read. TrainError where they do not fit each other."""
    from gmn_train.train import choose_device, load_weights, make_model

    folder = RunFolder(run)
    config = folder.config()
    weights = folder.load_best()
    if store is not None:
        config = replace(config, store=store)
    session = Session(config, need_labels=need_labels)
    device = choose_device(config.device)
    session.precision = choose_precision(config, device, lambda _: None, folder.precision())
    model = make_model(session, device)
    load_weights(model, weights, str(folder.best))
    return session, model


def evaluate_run(run: Path, store: Path | None) -> dict[str, Any]:
    """The metric of every part at the best epoch."""
    session, model = open_best(run, store)
    found = evaluate_parts(session, model, ("train", "val", "test"))
    return {"run": str(run), "metric": session.task.metric, "split": session.config.split, **found}


def export_predictions(run: Path, store: Path | None, out: Path, *, embeddings: bool) -> dict[str, Any]:
    """Write item, scores (logits or values), prediction and, if asked, embeddings to .npz or .parquet."""
    if out.suffix not in (".npz", ".parquet"):
        raise TrainError(f"--out is {out}; its ending must be .npz or .parquet")
    session, model = open_best(run, store, need_labels=False)
    items, scores, hidden = predict_items(session, model, session.evaluation_steps(), embeddings=embeddings)
    order = np.argsort(items, kind="stable")
    columns: dict[str, Array] = {"item": items[order], "scores": scores[order]}
    if session.task.kind != "regression":
        columns["prediction"] = predicted_classes(session.task, scores[order])
    if hidden is not None:
        if session.task.level == "link":
            raise TrainError("embeddings belong to nodes, and a link task predicts pairs; leave out --embeddings")
        columns["embedding"] = hidden[order]
    try:
        _write(out, columns)
    except OSError as error:
        raise TrainError(f"cannot write {out}: {error.strerror or error}; choose another --out") from None
    return {"file": str(out), "items": len(items), "columns": {n: list(c.shape[1:]) for n, c in columns.items()}}


def _write(out: Path, columns: dict[str, Array]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(out.name + ".part")
    try:
        if out.suffix == ".npz":
            with aside.open("wb") as file:
                np.savez(file, **columns)  # type: ignore[arg-type]
        else:
            import pyarrow as pa
            from pyarrow import parquet

            arrays = {n: pa.array(list(c)) if c.ndim > 1 else pa.array(c) for n, c in columns.items()}
            parquet.write_table(pa.table(arrays), aside)
        aside.replace(out)
    finally:
        aside.unlink(missing_ok=True)
