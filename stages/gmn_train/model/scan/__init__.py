"""The selective scan of Mamba, for batches and for packed sequences, in both directions.

    from gmn_train.model.scan import selective_scan
    y = selective_scan(u, delta, A, B, C, D)

A backend is a file with a function `scan(u, delta, A, B, C, D, seq_ptr, reverse)` on packed rows, and a line
in `model.tables.BACKENDS`.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import silu, softplus

from gmn_pipeline.errors import ModelError, nearest
from gmn_pipeline.tables import load_code
from gmn_train.model.scan.checks import check_finite, check_seq_ptr, check_shapes
from gmn_train.model.scan.numba_scan import ScanInputs, fused_scans
from gmn_train.model.tables import BACKENDS

__all__ = ["ScanInputs", "choose_backend", "gated_scans", "selective_scan"]


def choose_backend(x: Tensor, backend: str = "auto") -> str:
    """The backend's name, for `auto` the one that suits x: numba on CPU, mamba on CUDA."""
    if backend in BACKENDS:
        return backend
    if backend != "auto":
        allowed = [*BACKENDS, "auto"]
        raise ModelError(f"scan backend '{backend}' is not one of {', '.join(allowed)}{nearest(backend, allowed)}")
    if x.device.type == "cuda":
        return "mamba"
    return "numba" if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) else "reference"


def selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    *,
    seq_ptr: Tensor | None = None,
    reverse: bool = False,
    backend: str = "auto",
) -> Tensor:
    """Scan h[t] = exp(Δ[t] A) h[t-1] + Δ[t] B[t] u[t] and return y[t] = C[t] h[t] + D u[t], of u's shape.

    Args:
        u: (batch, length, channels); or packed (total, channels) with `seq_ptr`.
        delta: step sizes Δ, of u's shape.
        A: (channels, states).
        B: (batch, length, states) or (total, states).
        C: as B.
        D: (channels,) or None.
        seq_ptr: (sequences + 1,) borders of packed sequences: sequence s is rows seq_ptr[s] to
            seq_ptr[s + 1], and its state starts from zero.
        reverse: scan each sequence from its end to its beginning; y[t] then depends on rows t and after.
        backend: a name in BACKENDS, or `auto`: numba on CPU, mamba on CUDA.

    Raises:
        ModelError: shapes, types or borders do not fit, or an input is not finite.
    """
    name = choose_backend(u, backend)
    check_shapes(u, delta, A, B, C, D, seq_ptr)
    if seq_ptr is None:
        batch, length, _ = u.shape
        ptr = torch.arange(batch + 1) * length
    else:
        ptr = check_seq_ptr(seq_ptr, len(u))
    check_finite(u=u, delta=delta, A=A, B=B, C=C, D=D)
    packed = [x.flatten(0, -2) for x in (u, delta, B, C)]  # (total, channels) twice, (total, states) twice
    y: Tensor = load_code(BACKENDS[name].code)(packed[0], packed[1], A, packed[2], packed[3], D, ptr, reverse)
    return y.view(u.shape)


def gated_scans(scans: Sequence[ScanInputs], backend: str = "auto") -> list[Tensor]:
    """The scans of a layer: Δ = softplus(dt + bias), B beside C in BC (total, 2 states), times silu(z) if given.

    Packed rows only. Shapes and borders are checked, finiteness is not: a layer checks its own input. `numba`
    does all of it in one kernel, and the scans of both directions at once.
    """
    name = choose_backend(scans[0].u, backend)
    checked = []
    for scan in scans:
        u, states = scan.u, scan.A.shape[1]
        B, C = scan.BC[:, :states], scan.BC[:, states:]  # (total, states) each
        check_shapes(u, scan.dt, scan.A, B, C, scan.D, scan.seq_ptr)
        check_shapes(u, u if scan.z is None else scan.z, scan.A, B, C, scan.bias, scan.seq_ptr)
        checked.append(scan._replace(seq_ptr=check_seq_ptr(scan.seq_ptr, len(u))))
    if name == "numba":
        return fused_scans(checked)
    return [_gated(scan, load_code(BACKENDS[name].code)) for scan in checked]


def _gated(scan: ScanInputs, backend: Callable[..., Tensor]) -> Tensor:
    """One layer's scan in steps, for backends without a kernel for all of it."""
    states = scan.A.shape[1]
    delta = scan.dt if scan.bias is None else softplus(scan.dt + scan.bias)
    B, C = scan.BC[:, :states], scan.BC[:, states:]
    y = backend(scan.u, delta, scan.A, B, C, scan.D, scan.seq_ptr, scan.reverse)
    return y if scan.z is None else y * silu(scan.z)
