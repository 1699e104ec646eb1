"""What `gmn-train doctor` says, here and on machines that lack something."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.machine import usable_cores
from gmn_train.machine import doctor, probes
from tests.stores import ring_graph, write_store


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return doctor.examine()


def test_examines_this_machine(found: dict[str, Any]) -> None:
    assert found["cores"] == usable_cores()
    assert found["threads"]["torch"] == torch.get_num_threads()
    assert [kernel["name"] for kernel in found["kernels"]] == ["scan", "gather"]
    assert all(kernel["works"] and kernel["cache"] for kernel in found["kernels"])
    assert found["use"]["precision"] == "float32"
    assert found["use"]["scan"] == ("mamba" if found["cuda"]["available"] else "numba")
    json.dumps(found)  # nothing in it that JSON cannot say


def test_gather_is_probed_with_the_types_of_a_store(tmp_path: Path) -> None:
    """Another type would be another compilation, and `cached` would say nothing about training."""
    from gmn_pipeline.store.reading.gather import copy_nodes

    store = write_store(tmp_path / "s.zarr", ring_graph(), TokenSettings(2, 2, 1))
    store.view().gather([0, 1])
    known = set(copy_nodes.signatures)
    probes.tiny_gather()
    assert set(copy_nodes.signatures) == known


def test_table_names_everything(found: dict[str, Any]) -> None:
    rows = dict(doctor.rows_of(found))
    assert {"cores", "threads", "memory", "torch", "CUDA", "mamba-ssm", "Numba", "bf16", "will use"} <= set(rows)


@pytest.mark.parametrize("as_json", [True, False])
def test_prints(
    as_json: bool, found: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: found)
    monkeypatch.setenv("COLUMNS", "80")
    doctor.run_doctor(as_json=as_json)
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out) == found
    else:
        assert "will use" in out
        assert max(map(len, out.splitlines())) <= 80


def test_missing_package_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes.importlib.util, "find_spec", lambda _: None)
    assert "pip install mamba-ssm" in probes.package_state("mamba_ssm", cuda=True)["missing"]


def test_without_cuda_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> None:
        raise AssertionError("imported")

    monkeypatch.setattr("gmn_train.model.scan.mamba.load_kernel", forbidden)
    monkeypatch.setattr(probes.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(probes.importlib, "import_module", forbidden)
    assert "no CUDA" in probes.package_state("mamba_ssm", cuda=False)["missing"]
    assert "no CUDA" in probes.package_state("causal_conv1d", cuda=False)["missing"]


def test_bf16_that_kills_the_process_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        probes, "BF16_PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)  # {threads} {width} {device}"
    )
    assert probes.probe_bf16(1) == {"works": False, "reason": "it dies with SIGILL"}


def test_bf16_that_hangs_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: Any, **__: Any) -> None:
        raise subprocess.TimeoutExpired("python", 120)

    monkeypatch.setattr(probes.subprocess, "run", late)
    assert not probes.probe_bf16(1)["works"]


def test_failing_kernel_and_missing_mamba_become_advice(found: dict[str, Any]) -> None:
    def broken() -> list[Any]:
        raise RuntimeError("cannot cache function: no locator available")

    kernel = probes.kernel_state("scan", broken)
    changed = {
        **found,
        "kernels": [kernel],
        "cuda": {"available": True, "built": "12.4", "device": "a GPU"},
        "packages": {name: {"works": False, "missing": "not installed"} for name in probes.INSTALL},
        "cores": 0,
        "bf16": {"works": False, "reason": "it dies with SIGILL"},
    }
    advice = doctor.advice_for(changed)
    assert "mamba-ssm" in advice[0]
    assert "no locator" in advice[1]
    assert "--threads" in advice[2]
    assert dict(doctor.rows_of(changed))["bf16"] == "no: it dies with SIGILL"
