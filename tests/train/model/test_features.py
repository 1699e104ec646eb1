"""Features hidden in training: whole rows, or single values."""

import torch

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
