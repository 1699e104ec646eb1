"""The adapter to mamba-ssm, against a stand-in of its signature: the kernel itself needs CUDA."""

import sys

import pytest
import torch

from gmn_pipeline.errors import ModelError
from gmn_train.model.scan import BACKENDS, mamba, selective_scan
from tests.train.model.scan.scan_inputs import assert_close, make_inputs, pointers, with_gradients


def stand_in(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False):
    """mamba-ssm's signature and layout, (batch, channels, length), by our reference."""
    assert (z, delta_bias, delta_softplus, return_last_state) == (None, None, False, False)
    u, delta, B, C = (x.transpose(1, 2) for x in (u, delta, B, C))
    return selective_scan(u, delta, A, B, C, D, backend="reference").transpose(1, 2)


@pytest.mark.parametrize("lengths", [[5, 5, 5], [3, 0, 8, 1], [], [0, 0]])
@pytest.mark.parametrize("reverse", [False, True])
def test_mamba_adapter(lengths, reverse, monkeypatch):
    monkeypatch.setattr(mamba, "load_kernel", lambda: stand_in)
    inputs = make_inputs((sum(lengths),), 3, 4, torch.float32)
    results = [
        with_gradients(selective_scan(*inputs, seq_ptr=pointers(lengths), reverse=reverse, backend=b), inputs)
        for b in ("mamba", "reference")
    ]
    assert_close(*results, 1e-5)


def test_mamba_is_imported_late_and_its_absence_explained():
    assert "mamba" in BACKENDS
    if "mamba_ssm" in sys.modules:
        pytest.skip("mamba-ssm was imported by something else")
    with pytest.raises(ModelError, match="MAMBA_KEEP_CUDA_BUILD"):
        selective_scan(*make_inputs((2, 3), 4, 5), backend="mamba")
