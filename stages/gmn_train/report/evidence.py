"""What only the store and the best checkpoint can say: predictions, and what the token scans select."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from gmn_pipeline.errors import GmnError
from gmn_pipeline.place import StorePlace
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_pipeline.task import Task
from gmn_pipeline.types import Array, FloatArray
from gmn_train.learning.evaluation import evaluate_parts
from gmn_train.learning.predictions import predict_parts
from gmn_train.runs.predicting.export import TrainedModel, open_best
from gmn_train.settings.model_settings import ModelConfig

EXPLAIN_STEPS = 16
"""Batches the mean Δ is taken over: a mean over thousands of items, without a second pass over a large dataset."""


@dataclass(frozen=True)
class Evidence:
    """Measured now, from the best checkpoint."""

    task: Task
    parts: dict[str, tuple[FloatArray, Array]]
    """val and test: scores (items, outputs) and labels."""
    metrics: dict[str, float]
    deltas: FloatArray | None
    """(token scans, m+1) mean Δ by level; None for a model without token blocks."""
    scans: list[str]
    """Where each of them stands."""
    fingerprint: str
    facts: dict[str, str]
    """Of the store, for people."""
    parameters: int


def gather_evidence(run: Path, store: StorePlace, fingerprint: str | None) -> Evidence | str:
    """The evidence, or one sentence that says why there is none.

    fingerprint: of the store the run was trained from, if known; another store's predictions would mislead.
    """
    if isinstance(store, Path) and not store.exists():
        where = "" if store.is_absolute() else " seen from this folder; make the page where the run was started"
        return f"the store {store.name} is not there{where}."
    try:
        now = TokenStore.open(store).fingerprint
        if fingerprint is not None and now != fingerprint:
            return f"the store {store.name} is another one now (fingerprint {now[:12]}, was {fingerprint[:12]})."
        best = open_best(run)
        parts = predict_parts(best.sampler, best.model, best.compute, ("val", "test"))
        metrics = evaluate_parts(best.sampler, best.model, best.compute, ("val", "test"), parts)
        deltas = mean_deltas(best)
    except GmnError as error:
        return f"{error}."
    return Evidence(
        best.sampler.data.task,
        parts,
        metrics,
        deltas,
        [] if deltas is None else scan_names(best.config.model),
        now,
        store_facts(best),
        sum(p.numel() for p in best.model.parameters()),
    )


@torch.inference_mode()
def mean_deltas(best: TrainedModel) -> FloatArray | None:
    """Mean Δ that each level's tokens receive, (token scans, m+1), over the test items (val if there are none)."""
    sampler, data = best.sampler, best.sampler.data
    if not data.source.reads_tokens or not best.config.model.token_layers:
        return None
    total, weight = np.zeros(0), 0
    for step in sampler.evaluation_steps("test" if len(data.items["test"]) else "val")[:EXPLAIN_STEPS]:
        inputs = sampler.load(step, None).inputs
        deltas = best.model.eval()(best.compute.move(inputs), explain=True).level_deltas
        if deltas is not None:
            total = deltas.cpu().numpy() * inputs.targets + (total if weight else 0)
            weight += inputs.targets
    return total / weight if weight else None


def scan_names(config: ModelConfig) -> list[str]:
    """Where each row of `level_deltas` comes from, in its order."""
    places = ["input"] if config.reads_input_tokens else [f"after layer {i}" for i in config.blocks_after]
    if config.token_layers == 1:
        return places
    return [f"{place}, scan {i + 1}" for place in places for i in range(config.token_layers)]


def store_facts(best: TrainedModel) -> dict[str, str]:
    """What the store holds and what the run used of it."""
    data = best.sampler.data
    manifest, used, task = data.store.manifest, data.source.view.settings, data.task
    g, t = manifest.graph, manifest.tokens
    count = {"multiclass": "classes", "multilabel": "labels", "regression": "targets"}.get(task.kind)
    named = [str(v) if k in ("name", "dataset") else f"{k} {v}" for k, v in manifest.dataset.items()]
    facts = {
        "store": best.config.store.name,
        "dataset": ", ".join(named) or "unnamed",
        "fingerprint": data.store.fingerprint,
        "task": f"{task.item}, {task.kind}" + (f", {task.classes} {count}" if count else ""),
        "graph": (f"{g.graphs:,} graphs, " if g.many else "") + f"{g.nodes:,} nodes, {g.edges:,} edges",
        "items": ", ".join(f"{len(items):,} {part}" for part, items in data.items.items()),
        "tokens": f"m={used.m} M={used.M} s={used.s}, {t.walk} walks",
        "encodings": ", ".join(manifest.encodings) or "none",
        "mode": str(best.config.mode),
    }
    if (used.m, used.M, used.s) != (t.m, t.M, t.s):
        facts["tokens"] += f" (of m={t.m} M={t.M} s={t.s} in the store)"
    return facts
