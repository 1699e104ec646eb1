"""The task's metric on the parts of a split."""

from collections.abc import Sequence

from gmn_train.data.session import Session
from gmn_train.learning.link_ranking import rank_parts
from gmn_train.learning.metrics import evaluate_metric
from gmn_train.learning.predictions import Predicted, predict_parts
from gmn_train.model.frame import GraphModel


def evaluate_parts(
    session: Session, model: GraphModel, parts: Sequence[str], predicted: Predicted | None = None
) -> dict[str, float]:
    """By part, the metric of its items: of their scores, or of the ranks of their positive pairs.

    predicted: what `predict_parts` gave for these parts, if it is at hand.
    """
    if session.task.metric == "mrr":
        return rank_parts(session, model, parts)
    predicted = predict_parts(session, model, parts) if predicted is None else predicted
    return {part: evaluate_metric(session.task, scores, y) for part, (scores, y) in predicted.items()}
