"""The weights that are evaluated and kept are an average of the trained ones."""

import pytest
import torch
from torch import nn

from gmn_train.learning.averaging import WeightAverage


class Counter(nn.Module):
    """One weight and one buffer that go up by one per step."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3, dtype=torch.float64))
        self.register_buffer("seen", torch.zeros(3, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def step(self) -> None:
        with torch.no_grad():
            self.weight += 1
            self.seen += 1
            self.count += 1


@pytest.mark.parametrize(("share", "steps"), [(0.1, 40), (0.5, 30), (0.03, 200)])
def test_equals_the_plain_recurrence(share: float, steps: int) -> None:
    model = Counter()
    average = WeightAverage(model, share, steps)
    expected = 0.0
    for number in range(steps):
        model.step()
        average.update()
        value = float(number + 1)
        keep = min(1 - 1 / (share * steps), (1 + number) / (10 + number))
        expected = value if number == 0 else keep * expected + (1 - keep) * value
    found = average.module
    assert found.weight[0].item() == pytest.approx(expected, rel=1e-12)
    assert found.seen[0].item() == pytest.approx(expected, rel=1e-12)
    assert int(found.count) == steps
    assert steps - 2.5 * share * steps < expected < steps  # the first weights are forgotten


def test_a_share_of_nothing_keeps_the_last_weights() -> None:
    model = Counter()
    average = WeightAverage(model, 0.0, 100)
    model.step()
    average.update()
    assert average.module is model
    assert average.state_dict() == {}


def test_goes_on_from_a_checkpoint() -> None:
    model, other = Counter(), Counter()
    whole, broken = WeightAverage(model, 0.2, 50), WeightAverage(other, 0.2, 50)
    for number in range(50):
        if number == 23:
            resumed = Counter()
            resumed.load_state_dict(other.state_dict())
            kept = broken.state_dict()
            other, broken = resumed, WeightAverage(resumed, 0.2, 50)
            broken.load_state_dict(kept)
        for m, a in ((model, whole), (other, broken)):
            m.step()
            a.update()
    assert torch.equal(whole.module.weight, broken.module.weight)
    assert torch.equal(whole.module.seen, broken.module.seen)
