"""The verdict: only seeds that nobody chose count, and the control wins what lies within noise."""

from collections.abc import Sequence

import pytest

from gmn_train.search.verdict import Finalist, Verdict, judge_finalists, measure_noise


def finalist(number: int, model: str, first: float, repeats: Sequence[float]) -> Finalist:
    return Finalist(number, {"model.name": model}, model, first, 1.0, dict(enumerate(repeats, 1)))


def judge(gmn: Sequence[float], control: Sequence[float], *, higher: bool = True) -> Verdict:
    found = judge_finalists([finalist(0, "gmn", 0.99, gmn), finalist(1, "mpnn", 0.5, control)], higher=higher)
    assert found is not None
    return found


def test_a_clear_gain_is_gmns() -> None:
    verdict = judge([0.90, 0.91, 0.92], [0.80, 0.81, 0.82])
    assert verdict.chosen.model == "gmn"
    assert verdict.line.startswith("gmn helps: gmn 0.9100 ± 0.0100 over 3 further seeds, mpnn 0.8100 ± 0.0100")


def test_within_noise_the_control_is_chosen_however_good_the_first_value_was() -> None:
    verdict = judge([0.80, 0.83, 0.86], [0.79, 0.82, 0.85])
    assert verdict.chosen.model == "mpnn"
    assert verdict.line.startswith("GMN does not help here, use mpnn: ")
    assert "+0.0100 is within noise (± 0.0490)" in verdict.line  # 2 · 0.03 · sqrt(2/3)


def test_a_clear_loss_is_said() -> None:
    assert judge([0.70, 0.71], [0.80, 0.81]).line.startswith("message passing alone is better, use mpnn")


def test_less_is_better_for_errors() -> None:
    assert judge([0.20, 0.21, 0.22], [0.30, 0.31, 0.32], higher=False).chosen.model == "gmn"
    assert judge([0.40, 0.41, 0.42], [0.30, 0.31, 0.32], higher=False).chosen.model == "mpnn"


def test_one_seed_decides_nothing() -> None:
    verdict = judge([], [])
    assert verdict.noise is None
    assert verdict.line.startswith("nothing is decided: the time was too short")
    assert verdict.chosen.model == "gmn"  # the better first value
    further = judge([0.70], [0.80, 0.81])
    assert further.line.startswith("nothing is decided")
    assert further.chosen.model == "mpnn"  # a first value is lucky; a further seed is not


def test_the_best_of_a_side_is_the_one_whose_further_seeds_are_best() -> None:
    finalists = [
        finalist(0, "gmn", 0.99, [0.80, 0.81]), finalist(1, "gmn", 0.90, [0.88, 0.89]),
        finalist(2, "gmn", 0.995, [0.99]), finalist(3, "mpnn", 0.7, [0.70, 0.71]),
    ]  # fmt: skip
    verdict = judge_finalists(finalists, higher=True)
    assert verdict is not None
    assert verdict.chosen.number == 1
    assert judge_finalists([], higher=True) is None


def test_noise_is_pooled_around_each_mean() -> None:
    assert measure_noise([finalist(0, "gmn", 0, [1.0, 3.0]), finalist(1, "mpnn", 0, [10.0, 12.0])]) == pytest.approx(
        2**0.5
    )
    assert measure_noise([finalist(0, "gmn", 0, [1.0])]) is None
