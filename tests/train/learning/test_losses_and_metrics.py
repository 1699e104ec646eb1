"""Losses and metrics: agreement with the benchmarks' own definitions, and unknown labels."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gmn_pipeline import Task
from gmn_pipeline.metrics import METRICS
from gmn_train.learning.losses import class_weights, task_loss
from gmn_train.learning.metrics import evaluate_metric, precision_recall_curve, roc_curve

rng = np.random.default_rng(0)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if not metric.ranks_links])
def test_every_metric_is_perfect_for_perfect_scores(name: str) -> None:
    for kind in METRICS[name].kinds:
        y = np.array([0, 1, 1, 0, 1])
        classes, scores = 2, np.where(y, 3.0, -3.0)[:, None]
        if kind == "multiclass":
            scores = np.eye(2)[y]
        elif kind != "binary":
            y, classes = y[:, None].astype(np.float32), 1
            scores = y if kind == "regression" else scores
        perfect = 1.0 if METRICS[name].higher_is_better else 0.0
        assert evaluate_metric(Task.of("node", kind, classes, name), scores, y) == perfect


@given(seed=st.integers(0, 999))
def test_average_precision_is_ogbs(seed: int) -> None:
    """Peptides-func is judged by ogb's evaluator: unweighted mean over labels, unknown entries left out."""
    from ogb.graphproppred import Evaluator

    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, (40, 4)).astype(np.float32)
    y[draw.random(y.shape) < 0.1] = np.nan
    scores = draw.normal(size=y.shape).astype(np.float32)
    evaluator = Evaluator("ogbg-molpcba")
    evaluator.num_tasks = 4
    wanted = evaluator.eval({"y_true": y, "y_pred": scores})["ap"]
    assert evaluate_metric(Task.of("graph", "multilabel", 4), scores, y) == pytest.approx(wanted)


@given(seed=st.integers(0, 999), ties=st.booleans(), rare=st.booleans())
def test_metrics_have_the_bits_of_scikit_learns(seed: int, ties: bool, rare: bool) -> None:
    from sklearn import metrics as sk

    draw = np.random.default_rng(seed)
    items = int(draw.integers(2, 300))
    scores = draw.normal(size=(items, 5)).astype(np.float32).round(1 if ties else 9)
    y = (draw.random(items) < (0.05 if rare else 0.5)).astype(np.int64)
    y[:2] = 0, 1
    one = scores[:, :1]
    wanted = {
        "accuracy": sk.accuracy_score(y, one[:, 0] > 0),
        "weighted_accuracy": sk.balanced_accuracy_score(y, one[:, 0] > 0),
        "macro_f1": sk.f1_score(y, one[:, 0] > 0, average="macro"),
        "roc_auc": sk.roc_auc_score(y, one),
        "average_precision": sk.average_precision_score(y, one),
    }
    assert {name: evaluate_metric(Task.of("node", "binary", 2, name), one, y) for name in wanted} == wanted
    classes = draw.integers(0, 3 if rare else 5, items)
    found = scores.argmax(1)
    assert evaluate_metric(Task.of("node", "multiclass", 5), scores, classes) == sk.accuracy_score(classes, found)
    macro = sk.f1_score(classes, found, average="macro", zero_division=0)
    assert evaluate_metric(Task.of("node", "multiclass", 5, "macro_f1"), scores, classes) == macro
    false, true, _ = sk.roc_curve(y, one)
    precision, recall, _ = sk.precision_recall_curve(y, one)
    assert np.array_equal(roc_curve(one[:, 0], y), (false, true))
    assert np.array_equal(precision_recall_curve(one[:, 0], y), (precision[:-1], recall[:-1]))


def test_weighted_accuracy_is_the_mean_of_the_classes_own() -> None:
    task = Task.of("node", "binary", 2, "weighted_accuracy")
    y, scores = np.array([0, 0, 0, 0, 1, 1]), np.array([[-1.0], [-1], [-1], [1], [1], [-1]])
    assert evaluate_metric(task, scores, y) == pytest.approx((3 / 4 + 1 / 2) / 2)


def test_unknown_labels_do_not_count() -> None:
    task = Task.of("node", "multiclass", 3)
    scores, y = rng.normal(size=(6, 3)).astype(np.float32), np.array([0, -1, 2, 1, -1, 0])
    known = y >= 0
    assert evaluate_metric(task, scores, y) == evaluate_metric(task, scores[known], y[known])
    logits = torch.tensor(scores)
    assert task_loss(task, logits, torch.tensor(y)) == task_loss(task, logits[known], torch.tensor(y[known]))
    task = Task.of("graph", "regression", 2)
    y2 = np.array([[1.0, np.nan], [np.nan, 3.0]], dtype=np.float32)
    assert evaluate_metric(task, np.zeros((2, 2), np.float32), y2) == 2.0
    assert float(task_loss(task, torch.zeros(2, 2), torch.tensor(y2))) == 2.0


@pytest.mark.parametrize("kind", ["multiclass", "binary", "multilabel", "regression"])
def test_a_batch_without_known_labels_has_no_loss_and_no_gradient(kind) -> None:
    task = Task.of("node", kind, 2)
    logits = torch.randn(3, task.outputs, requires_grad=True)
    whole = kind in ("multiclass", "binary")
    y = torch.full((3,), -1) if whole else torch.full((3, 2), torch.nan)
    loss = task_loss(task, logits, y)
    loss.backward()
    assert float(loss.detach()) == 0
    assert logits.grad is not None
    assert not logits.grad.abs().sum()


def test_undefined_metrics_are_nan() -> None:
    task = Task.of("node", "binary", 2)
    assert np.isnan(evaluate_metric(task, np.zeros((3, 1)), np.array([1, 1, 1])))
    assert np.isnan(evaluate_metric(task, np.zeros((0, 1)), np.zeros(0, int)))
    assert np.isnan(evaluate_metric(task, np.array([[0.0], [np.nan]]), np.array([0, 1])))


def test_class_weights_are_the_shares_of_the_others() -> None:
    weighted = Task.of("node", "binary", 2, "weighted_accuracy", class_weighted=True)
    found = class_weights(weighted, np.array([0, 0, 0, 1, -1]))
    assert found is not None
    assert found.tolist() == [0.25, 0.75]
    assert class_weights(Task.of("node", "binary", 2), np.array([0, 1])) is None
