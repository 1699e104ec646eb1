"""Scores of a model for the items of a store."""

from collections.abc import Sequence

import numpy as np
import torch

from gmn_pipeline.types import Array, FloatArray
from gmn_train.data.inputs import to_device
from gmn_train.data.read_ahead import ReadAhead
from gmn_train.data.session import Session
from gmn_train.data.steps import Step
from gmn_train.learning.precision import computing_in
from gmn_train.model.frame import GraphModel

DRAW_EPOCH = 1 << 40
"""Epoch number of the first draw beyond training's, for averaging over several."""


Predicted = dict[str, tuple[FloatArray, Array]]
"""By part, (scores (items, outputs), labels) of its items."""


def predict_parts(session: Session, model: GraphModel, parts: Sequence[str]) -> Predicted:
    """Scores and labels of the parts' items. In `full` mode one pass serves all parts."""
    found = {}
    shared = predict_items(session, model, session.evaluation_steps()) if session.mode == "full" else None
    for part in parts:
        wanted = session.items[part]
        items, scores = shared[:2] if shared else predict_items(session, model, session.evaluation_steps(part))[:2]
        rows = np.isin(items, wanted)
        assert session.graph.y is not None
        found[part] = (scores[rows], session.graph.y[items[rows]])
    return found


def predict_items(
    session: Session, model: GraphModel, steps: list[Step], *, embeddings: bool = False
) -> tuple[Array, FloatArray, FloatArray | None]:
    """(items (R,), scores (R, outputs), embeddings (R, width) or None), averaged over `eval_draws` draws."""
    draws = session.config.eval_draws
    total: FloatArray | None = None
    for draw in range(draws):
        epoch = None if draws == 1 else DRAW_EPOCH + draw
        items, scores, hidden = _one_draw(session, model, steps, epoch, embeddings)
        total = scores if total is None else total + scores
    assert total is not None
    return items, total / draws, hidden


def _one_draw(
    session: Session, model: GraphModel, steps: list[Step], epoch: int | None, embeddings: bool
) -> tuple[Array, FloatArray, FloatArray | None]:
    device = next(model.parameters()).device
    model.eval()
    items, scores, hidden = [], [], []
    with torch.inference_mode():
        for _, loaded in ReadAhead(
            steps, lambda step: session.load(step, epoch), threads=session.config.loader_threads
        ):
            inputs = loaded.inputs if device.type == "cpu" else to_device(loaded.inputs, device)
            with computing_in(session.precision, device):
                outputs = model(inputs)
            items.append(loaded.items)
            scores.append(outputs.logits.float().cpu().numpy())
            if embeddings:
                hidden.append(outputs.embeddings.float().cpu().numpy())
    joined = np.concatenate(hidden) if embeddings else None
    return np.concatenate(items), np.concatenate(scores), joined
