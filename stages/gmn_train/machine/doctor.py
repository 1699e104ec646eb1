"""`gmn-train doctor`: what this machine has, and what will be used."""

import json
import platform
from typing import Any

from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.console.output import size_text
from gmn_train.machine.probes import (
    INSTALL,
    kernel_state,
    memory_bytes,
    package_state,
    probe_bf16,
    tiny_gather,
    tiny_scan,
)


def run_doctor(as_json: bool) -> None:
    """Print everything, as a table or as JSON."""
    facts = examine()
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    from rich.console import Console

    from gmn_pipeline.console.output import two_columns

    console = Console()
    console.print(two_columns("", rows_of(facts)))
    for advice in facts["advice"]:
        console.print(f"• {advice}", style="yellow", markup=False)


def examine() -> dict[str, Any]:
    """Look at the machine; a few seconds, most of them for compiling where kernels are not cached."""
    import numba
    import torch

    cuda = torch.cuda.is_available()
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "cores": usable_cores(),
        "threads": {"torch": torch.get_num_threads(), "kernels": torch.get_num_threads()},
        "memory": memory_bytes(),
        "torch": torch.__version__,
        "cuda": {
            "available": cuda,
            "built": torch.version.cuda,
            "device": torch.cuda.get_device_name() if cuda else None,
        },
        "packages": {name: package_state(name, cuda) for name in INSTALL},
        "numba": numba.__version__,
        "kernels": [kernel_state(name, call) for name, call in (("scan", tiny_scan), ("gather", tiny_gather))],
        "bf16": probe_bf16(torch.get_num_threads()),
    }
    facts["use"] = what_is_used(cuda)
    facts["advice"] = advice_for(facts)
    return facts


def what_is_used(cuda: bool) -> dict[str, str]:
    """What `gmn-train run` uses by default."""
    import torch

    from gmn_train.machine.compute import choose_device
    from gmn_train.model.scan import choose_backend

    device = choose_device("auto")
    backends = {"cpu": choose_backend(torch.zeros(1))}
    if cuda:
        backends["cuda"] = choose_backend(torch.zeros(1, device="cuda"))
    return {"device": str(device), "scan": backends[device.type], "precision": "float32"}


def advice_for(facts: dict[str, Any]) -> list[str]:
    """What a person may want to change, most useful first."""
    advice = []
    mamba = facts["packages"]["mamba_ssm"]
    if facts["cuda"]["available"] and not mamba["works"]:
        advice.append(
            f"CUDA training needs mamba-ssm: {INSTALL['mamba_ssm']}, or --set model.scan_backend=reference (slow)"
        )
    for kernel in facts["kernels"]:
        if not kernel["works"]:
            advice.append(f"the {kernel['name']} kernel fails ({kernel['error']}); reinstall numba, or report it")
        elif not kernel["writable"]:
            advice.append(f"the {kernel['name']} kernel cannot be cached: set NUMBA_CACHE_DIR to a writable folder")
    if facts["threads"]["torch"] > facts["cores"]:
        advice.append(f"more threads than the {facts['cores']} cores usable: pass --threads {facts['cores']}")
    return advice


def rows_of(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The table for people."""
    memory, cuda, use, bf16 = facts["memory"], facts["cuda"], facts["use"], facts["bf16"]
    sizes = [f"{size_text(value)} {name}" for name, value in memory.items() if value is not None]
    rows = [
        ("cores", f"{facts['cores']} usable"),
        ("threads", f"{facts['threads']['torch']} for torch, {facts['threads']['kernels']} for Numba kernels"),
        ("memory", ", ".join(sizes) or "unknown"),
        ("python", facts["python"]),
        ("torch", facts["torch"]),
        ("CUDA", cuda["device"] or ("no device" if cuda["built"] else "no: this torch is built without it")),
    ]
    for name, state in facts["packages"].items():
        version = f"{state.get('version') or ''}"
        rows.append((name.replace("_", "-"), version if state["works"] else state["missing"]))
    rows.append(("Numba", facts["numba"]))
    for kernel in facts["kernels"]:
        rows.append((f"{kernel['name']} kernel", _kernel_text(kernel)))
    if not bf16["works"]:
        rows.append(("bf16", f"no: {bf16['reason']}"))
    else:
        rows.append(("bf16", f"works, {bf16['speed_against_float32']}x the speed of float32 in a BiMamba layer"))
    rows.append(("will use", f"{use['device']}, scan by {use['scan']}, {use['precision']}"))
    return rows


def _kernel_text(kernel: dict[str, Any]) -> str:
    if not kernel["works"]:
        return f"fails: {kernel['error']}"
    ready = "cached" if kernel["warm"] else "compiled now"
    cache = "cache writable" if kernel["writable"] else "cache not writable"
    return f"{ready} ({kernel['first_seconds']:.2f} s), {cache}, {kernel['seconds'] * 1e6:,.0f} µs a tiny call"
