"""The selective scan: what it refuses, and what it says then."""

import math

import pytest
import torch

from gmn_pipeline.errors import ModelError
from gmn_train.model.scan import ScanInputs, gated_scans, selective_scan
from tests.train.model.scan.scan_inputs import make_inputs, pointers


def good():
    return dict(zip(["u", "delta", "A", "B", "C", "D"], (x.detach() for x in make_inputs((2, 3), 4, 5)), strict=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"u": torch.zeros(6, 4, dtype=torch.float64)}, "u has shape"),
        ({"delta": torch.zeros(2, 3, 5, dtype=torch.float64)}, "delta has shape"),
        ({"A": torch.zeros(3, 5, dtype=torch.float64)}, "A has shape"),
        ({"A": torch.zeros(4, 0, dtype=torch.float64)}, "A has shape"),
        ({"B": torch.zeros(2, 3, 4, dtype=torch.float64)}, "B has shape"),
        ({"C": torch.zeros(2, 2, 5, dtype=torch.float64)}, "C has shape"),
        ({"D": torch.zeros(5, dtype=torch.float64)}, "D has shape"),
        ({"delta": torch.zeros(2, 3, 4)}, "delta is torch.float32"),
        ({"A": torch.full((4, 5), math.nan, dtype=torch.float64)}, "A holds 20 NaN"),
        ({"backend": "numbas"}, "did you mean 'numba'"),
        ({"seq_ptr": torch.tensor([0, 6])}, "u has shape"),
    ],
)
def test_refuses(change, message):
    with pytest.raises(ModelError, match=message):
        selective_scan(**{**good(), **change})


@pytest.mark.parametrize("name", ["u", "delta", "A", "B", "C", "D"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_refuses_what_is_not_finite(name, value):
    inputs = good()
    inputs[name].view(-1)[-1] = value
    with pytest.raises(ModelError, match=f"{name} holds 1 NaN or infinite"):
        selective_scan(**inputs)


def test_large_finite_values_pass():
    inputs = {k: v.float() for k, v in good().items()}
    inputs["B"] = torch.full_like(inputs["B"], 3e38)  # their sum is infinite
    inputs["u"] = inputs["u"] * 0
    assert torch.equal(selective_scan(**inputs), inputs["u"])  # a sequence of zeros stays one


@pytest.mark.parametrize(
    ("seq_ptr", "message"),
    [
        ([0, 4, 2, 6], "falls from 4 to 2"),
        ([1, 6], "from 1 to 6"),
        ([0, 5], "from 0 to 5"),
        ([0, 7], "from 0 to 7"),
        ([], "expected int64"),
        ([0.0, 6.0], "torch.float32"),
        ([[0, 6]], "shape"),
    ],
)
def test_refuses_borders(seq_ptr, message):
    u, delta, A, B, C, D = make_inputs((6,), 4, 5)
    with pytest.raises(ModelError, match=message):
        selective_scan(u, delta, A, B, C, D, seq_ptr=torch.tensor(seq_ptr))


def test_numba_refuses_half():
    inputs = {k: v.half() for k, v in good().items()}
    with pytest.raises(ModelError, match="float32 or float64 on the CPU"):
        selective_scan(**inputs, backend="numba")
    assert selective_scan(**inputs).dtype == torch.float16  # auto falls back


@pytest.mark.parametrize(
    "change", [{"z": (19, 6)}, {"bias": (5,)}, {"BC": (20, 7)}, {"dt": (20, 5)}, {"seq_ptr": None}]
)
def test_gated_scan_refuses(change):
    u, dt, A, B, C, D = (x.detach() for x in make_inputs((20,), 6, 4))
    inputs = {"u": u, "dt": dt, "A": A, "BC": torch.cat([B, C], 1), "D": D, "bias": D, "z": u}
    ptr = pointers([20] if "seq_ptr" not in change else [21])
    inputs |= {name: u.new_zeros(shape) for name, shape in change.items() if shape}
    with pytest.raises(ModelError):
        gated_scans([ScanInputs(**inputs, seq_ptr=ptr, reverse=False)], "numba")
