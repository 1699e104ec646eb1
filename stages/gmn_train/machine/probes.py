"""What a machine has, looked up without harm: nothing is imported or run that could take the process down."""

import importlib.metadata
import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gmn_pipeline.errors import ModelError

BF16_PROBE = """
import json, time, torch
from gmn_train.model.layers.bimamba import BiMamba
torch.set_num_threads({threads})
layer = BiMamba({width}, expand=1).to("{device}")
x = torch.randn(512, 17, {width}, device="{device}")
def seconds(half):
    begun = time.perf_counter()
    with torch.autocast("{device}", torch.bfloat16, enabled=half):
        y = layer(x)
    y.square().mean().backward()
    float(layer.norm.weight.grad.sum())  # waits for a device that computes in the background
    return time.perf_counter() - begun
times = [[seconds(half) for half in (False, True)] for _ in range(8)]
print(json.dumps([min(column) for column in zip(*times[1:])]))
"""
INSTALL = {
    "mamba_ssm": "MAMBA_KEEP_CUDA_BUILD=TRUE pip install mamba-ssm --no-build-isolation",
    "causal_conv1d": "pip install causal-conv1d --no-build-isolation",
}


def memory_bytes() -> dict[str, int | None]:
    """Memory of the machine, of it available now, and a container's limit."""
    lines = Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").exists() else []
    table = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith("kB")}
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.exists() else "max"
    return {
        "total": table.get("MemTotal"),
        "available": table.get("MemAvailable"),
        "limit": int(text) if text.isdigit() else None,
    }


def package_state(name: str, cuda: bool) -> dict[str, Any]:
    """Whether a CUDA package is there. It is imported only where there is CUDA: it fails or hangs without."""
    if importlib.util.find_spec(name) is None:
        return {"installed": False, "works": False, "missing": f"not installed: {INSTALL[name]}"}
    state: dict[str, Any] = {"installed": True, "version": _version(name), "works": None, "missing": None}
    if not cuda:
        return {**state, "missing": "installed, but there is no CUDA to try it on"}
    try:
        if name == "mamba_ssm":
            from gmn_train.model.scan.mamba import load_kernel

            load_kernel()
        else:
            importlib.import_module(name)
    except (ModelError, ImportError, OSError) as error:
        return {**state, "works": False, "missing": str(error)}
    return {**state, "works": True}


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return None


def kernel_state(name: str, call: Callable[[], list[Any]]) -> dict[str, Any]:
    """Compile or load the kernels behind `call` and time them; it returns those it used."""
    begun = time.perf_counter()
    try:
        kernels = call()
    except Exception as error:  # whatever fails here is what the person wants to know
        return {"name": name, "works": False, "error": f"{type(error).__name__}: {error}".splitlines()[0]}
    first = time.perf_counter() - begun
    begun = time.perf_counter()
    call()
    folders = [kernel.stats.cache_path for kernel in kernels]
    return {
        "name": name,
        "works": True,
        "warm": not any(kernel.stats.cache_misses for kernel in kernels),
        "cache": [folder for folder in dict.fromkeys(folders) if folder],
        "writable": all(folder and _is_writable(Path(folder)) for folder in folders),
        "first_seconds": round(first, 4),
        "seconds": round(time.perf_counter() - begun, 6),
    }


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def tiny_scan() -> list[Any]:
    """One forward and backward pass as a layer makes it."""
    import torch

    from gmn_train.model.scan import ScanInputs, gated_scans
    from gmn_train.model.scan.gradient_kernels import scan_gradients
    from gmn_train.model.scan.kernels import scan_outputs

    u, dt, z = (torch.full((8, 4), 0.1).requires_grad_() for _ in range(3))  # (total, channels)
    A, BC = -torch.ones(4, 2), torch.ones(8, 4)  # (channels, states), (total, 2 states)
    D, bias = torch.ones(4), torch.zeros(4)
    ptr = torch.tensor([0, 3, 8])
    gated_scans([ScanInputs(u, dt, A, BC, D, bias, z, ptr, reverse=False)], "numba")[0].sum().backward()
    return [scan_outputs, scan_gradients]


def tiny_gather() -> list[Any]:
    """The node lists of one node's two tokens, m = M = s = 1, as a store's reader copies them."""
    import numpy as np

    from gmn_pipeline.store.reading.gather import copy_nodes

    nodes, node_ptr = np.array([0, 1, 0], np.int32), np.array([0, 2, 3])
    stored = [nodes, node_ptr.astype(np.int32)]
    for array in stored:
        array.flags.writeable = False  # as a mapped store's are; another type would be another compilation
    one, chosen, shape = np.zeros(1, np.int64), np.zeros((1, 1, 1), np.int64), np.ones(6, np.int64)
    copy_nodes(*stored, one, one, one, chosen, shape, 2, node_ptr, np.empty(3, np.int32))
    return [copy_nodes]


def probe_bf16(threads: int, width: int = 64, device: str = "cpu") -> dict[str, Any]:
    """Whether bfloat16 works, and its seconds for a BiMamba layer's forward and backward pass beside float32's.

    In a process of its own: some CPUs that advertise bfloat16 die of an illegal instruction.
    """
    command = [sys.executable, "-c", BF16_PROBE.format(threads=threads, width=width, device=device)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return {"works": False, "reason": "a layer took over 120 s"}
    if done.returncode < 0:
        return {"works": False, "reason": f"it dies with {signal.Signals(-done.returncode).name}"}
    if done.returncode:
        return {"works": False, "reason": (done.stderr.strip().splitlines() or ["unknown"])[-1]}
    float32, bf16 = json.loads(done.stdout)
    speed = {"float32_seconds": float32, "bf16_seconds": bf16, "speed_against_float32": round(float32 / bf16, 2)}
    return {"works": True, "reason": None, **speed}
