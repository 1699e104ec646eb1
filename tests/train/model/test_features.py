"""Features hidden in training: whole rows, or single values."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_train.data.inputs.entries import DENSEST, FeatureEntries
from gmn_train.model.layers.features import FeatureProjection


def hidden_share(projection: FeatureProjection, x: torch.Tensor) -> tuple[float, float, torch.Tensor]:
    """What of x reaches the linear map: share of zeros, share of rows of zeros, and the rest."""
    seen: list[torch.Tensor] = []
    assert projection.linear is not None
    projection.linear.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    projection(x, [], len(x))
    return float((seen[0] == 0).float().mean()), float((seen[0] == 0).all(1).float().mean()), seen[0][seen[0] != 0]


def test_single_values_or_whole_rows_are_hidden_in_training_only() -> None:
    torch.manual_seed(0)
    x = torch.full((2000, 20), 3.0)
    values, rows, rest = hidden_share(FeatureProjection(4, 20, None, dropout=0.5), x)
    assert 0.48 < values < 0.52
    assert rows == 0
    assert (rest == 6).all(), "what is shown is scaled up"
    values, rows, rest = hidden_share(FeatureProjection(4, 20, None, mask=0.25), x)
    assert 0.2 < rows < 0.3
    assert values == rows
    assert (rest == 3).all()
    assert hidden_share(FeatureProjection(4, 20, None, mask=0.25, dropout=0.5).eval(), x)[0] == 0


def test_extra_columns_are_never_hidden() -> None:
    torch.manual_seed(0)
    projection = FeatureProjection(4, 3, None, extra=2, mask=0.9, dropout=0.9)
    x, extra = torch.ones(50, 3), torch.arange(100.0).view(50, 2) + 1
    seen: list[torch.Tensor] = []
    assert projection.linear is not None
    projection.linear.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    projection(x, [extra], 50)
    assert torch.equal(seen[0][:, 3:], extra)


def words(rows: int, columns: int, share: float, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    draws = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=draws, dtype=dtype)
    return x * (torch.rand(rows, columns, generator=draws) < share)


@given(st.integers(1, 30), st.integers(32, 60), st.floats(0, 0.09), st.integers(0, 2), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_entries_of_mostly_zeros_give_what_all_values_give(
    rows: int, columns: int, share: float, extra: int, seed: int
) -> None:
    x, others = words(rows, columns, share, seed), [torch.randn(rows, extra)] if extra else []
    entries = FeatureEntries.of(x)
    if int(torch.count_nonzero(x)) > DENSEST * x.numel():  # few rows, by chance
        assert entries is None
        return
    projection = FeatureProjection(5, columns, None, extra=extra)
    grad = torch.randn(rows, 5)
    results = []
    for given_entries in (None, entries):
        projection.zero_grad()
        out = projection(x, others, rows, given_entries)
        (out * grad).sum().backward()
        results.append([out.detach(), *(p.grad.clone() for p in projection.parameters())])
    for plain, sparse in zip(*results, strict=True):
        torch.testing.assert_close(sparse, plain, atol=1e-5, rtol=1e-5)


def test_gradients_of_entries_are_those_of_finite_differences() -> None:
    entries = FeatureEntries.of(words(7, 40, 0.08, dtype=torch.float64))
    assert entries is not None
    weight = torch.randn(3, 40, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(entries.product, (weight,))


def test_entries_are_hidden_in_training_and_the_others_scaled_up() -> None:
    torch.manual_seed(0)
    x = (torch.rand(400, 100) < 0.05).float()
    projection = FeatureProjection(1, 100, None, dropout=0.5)
    with torch.no_grad():
        projection.linear.weight.fill_(1.0)  # type: ignore[union-attr]
        projection.linear.bias.zero_()  # type: ignore[union-attr]
    shown = projection(x, [], 400, FeatureEntries.of(x)).detach().sum() / 2
    assert 0.45 < float(shown / x.sum()) < 0.55
    masked = FeatureProjection(1, 100, None, mask=0.25)
    hidden = (masked(x, [], 400, FeatureEntries.of(x)) == masked.linear.bias).all(1)  # type: ignore[union-attr]
    assert 0.2 < float(hidden.float().mean()) < 0.35  # some rows have no words at all


@pytest.mark.parametrize(
    "x", [torch.rand(5, 40), torch.zeros(5, 31), torch.zeros(5, 40, dtype=torch.int64), torch.zeros(0, 40), None]
)
def test_other_features_have_no_entries(x: torch.Tensor | None) -> None:
    assert FeatureEntries.of(x) is None
