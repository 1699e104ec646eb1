"""bf16: a real probe decides, one line says why not, and results stay near float32's."""

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gmn_pipeline import TokenSettings
from gmn_pipeline.errors import TrainError
from gmn_train.machine import compute, probes
from gmn_train.machine.compute import Compute, choose_precision
from gmn_train.model import GMN, InputSource, ModelConfig, whole_inputs
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.predicting.export import evaluate_run, open_best
from gmn_train.runs.start import start_runs
from gmn_train.runs.watching.display import Display, Watcher
from gmn_train.settings.run_settings import TrainConfig
from tests.stores import ring_graph, write_store
from tests.train.model_stores import model_store
from tests.train.small_runs import settings_for

CPU = torch.device("cpu")
DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)  # {threads} {width} {device}"
PRINTS = "print('[{first}, {second}]')  # {{threads}} {{width}} {{device}}"
FASTER, SLOWER = PRINTS.format(first=0.004, second=0.002), PRINTS.format(first=0.002, second=0.004)


@pytest.fixture(autouse=True)
def _no_earlier_probe() -> Iterator[None]:
    compute._probe_once.cache_clear()
    yield
    compute._probe_once.cache_clear()


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    store = write_store(tmp_path / "ring.zarr", ring_graph(60, 60), TokenSettings(2, 3, 2))
    return settings_for(store, epochs=4, checkpoint_seconds=0)


def train(config: TrainConfig, path: Path, watcher: Watcher | None = None) -> dict:
    return start_runs(config, watcher or Watcher(), run_dir=path)[0].summary


@pytest.mark.parametrize(
    ("asked", "probe", "used", "line"),
    [
        ("bf16", DIES, "float32", "float32 is used, not bf16: it dies with SIGILL"),
        (
            "auto",
            SLOWER,
            "float32",
            "float32 is used, not bf16: it is slower here, 4.0 ms against 2.0 ms for one layer",
        ),
        ("bf16", SLOWER, "bf16", None),
        ("auto", "raise SystemExit('no such type')  # {threads}", "float32", "float32 is used, not bf16: no such type"),
        ("auto", FASTER, "bf16", None),
    ],
)
def test_the_probe_decides(asked, probe: str, used: str, line: str | None, config, monkeypatch) -> None:
    monkeypatch.setattr(probes, "BF16_PROBE", probe)
    said: list[str] = []
    assert choose_precision(replace(config, precision=asked), CPU, said.append) == used
    assert said == ([] if line is None else [line])


def test_a_dying_probe_is_told_and_recorded(config: TrainConfig, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(probes, "BF16_PROBE", DIES)
    summary = train(replace(config, precision="bf16"), tmp_path / "run", Display("lines"))
    assert capsys.readouterr().err.count("float32 is used, not bf16: it dies with SIGILL") == 1
    assert summary["precision"] == "float32"


def test_float32_asks_no_probe(config: TrainConfig, monkeypatch) -> None:
    monkeypatch.setattr(compute, "probe_bf16", None)
    assert choose_precision(config, CPU, print) == "float32"


def test_a_run_goes_on_as_it_began(config: TrainConfig, tmp_path: Path, monkeypatch) -> None:
    """What `auto` chose stands in the run's settings; a machine that cannot do it says so."""
    monkeypatch.setattr(probes, "BF16_PROBE", FASTER)
    train(replace(config, precision="auto", epochs=1), tmp_path / "run")
    assert RunFolder(tmp_path / "run").config().precision == "bf16"
    compute._probe_once.cache_clear()
    monkeypatch.setattr(probes, "BF16_PROBE", SLOWER)
    assert open_best(tmp_path / "run").compute.precision == "bf16"
    compute._probe_once.cache_clear()
    monkeypatch.setattr(probes, "BF16_PROBE", DIES)
    with pytest.raises(TrainError, match="computes in bf16, which does not work on this machine"):
        open_best(tmp_path / "run")


@pytest.fixture(scope="module")
def _bf16_works() -> None:
    found = probes.probe_bf16(1, width=16)
    if not found["works"]:
        pytest.skip(f"bf16 does not work on this machine: {found['reason']}")


@pytest.mark.usefixtures("_bf16_works")
def test_metrics_are_near_those_of_float32(config: TrainConfig, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(probes, "BF16_PROBE", FASTER)
    for store_mode in ("full", "batch"):
        model = config.model.changed(token_blocks="input") if store_mode == "batch" else config.model
        one = replace(config, mode=store_mode, model=model, epochs=8)  # type: ignore[arg-type]
        single = train(one, tmp_path / f"{store_mode}32")
        half = train(replace(one, precision="bf16"), tmp_path / f"{store_mode}16")
        assert (single["precision"], half["precision"]) == ("float32", "bf16")
        losses = [[row["loss"] for row in RunFolder(tmp_path / f"{store_mode}{n}").metrics()] for n in (32, 16)]
        assert losses[0] != losses[1]  # bf16 was really used
        assert losses[1] == pytest.approx(losses[0], rel=0.05)
        assert half["val"] == pytest.approx(single["val"], abs=0.15)  # a few of 20 items near the border
        assert evaluate_run(tmp_path / f"{store_mode}16", None)["val"] == half["val"]


MANY_SHAPES = """
import ctypes, torch
from gmn_train.machine.compute import Compute
from gmn_train.settings.run_settings import TrainConfig

fields = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
MallocInfo = type("MallocInfo", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in fields]})
allocated = ctypes.CDLL(None).mallinfo2
allocated.restype = MallocInfo
compute, linear, held = Compute.of(TrainConfig(store="", precision="bf16")), torch.nn.Linear(64, 64), []
for rows in range(1000, 1240):
    with compute.autocast():
        out = linear(torch.ones(rows, 64, requires_grad=True))
    out.float().sum().backward()
    held.append(allocated().uordblks)
print(held[-1] - held[80])
"""


@pytest.mark.usefixtures("_bf16_works")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="only glibc counts what is allocated")
def test_products_of_ever_new_shapes_take_no_more_memory() -> None:
    """oneDNN keeps 0.6 MB or more for each shape, by default of 1,024 products."""
    done = subprocess.run([sys.executable, "-c", MANY_SHAPES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10e6


@pytest.mark.usefixtures("_bf16_works")
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"token_blocks": "input", "encoder": "mean"},
        {"encoder": "gatedgcn", "mpnn": "gatedgcn"},
        {"encoder": "gine", "mpnn": "gine"},
        {"encoder": "rwf", "readout": "both-ends", "norm": "layer", "ffn": 2, "residual": "identity"},
        {"node_scan": False, "norm": "none"},
    ],
)
def test_every_part_of_the_model_works_in_bf16(tmp_path: Path, change: dict) -> None:
    """Near float32's results and gradients, in one pass and by chunks; states and predictions stay float32."""
    store = model_store(tmp_path / "s.zarr", ring_graph(60, 60, edge_features=True), TokenSettings(2, 2, 1))
    config = ModelConfig(**{"width": 16, "node_layers": 2, "states": 4, **change})
    source = InputSource(store.view(), config)
    torch.manual_seed(0)
    model = GMN(config, source.facts)
    found = []
    for used, chunk in (("float32", None), ("bf16", None), ("bf16", 25)):
        inputs = whole_inputs(source, epoch=0, chunk_nodes=chunk)
        model.zero_grad()
        torch.manual_seed(1)
        with Compute(CPU, used).autocast():  # type: ignore[arg-type]
            outputs = model(inputs)
        assert outputs.logits.dtype == outputs.embeddings.dtype == torch.float32
        outputs.logits.square().mean().backward()
        grads = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        found.append((outputs.logits.detach(), grads))
    (logits, grads), *halves = found
    for half_logits, half_grads in halves:
        assert (half_logits - logits).norm() < 0.05 * logits.norm()
        assert half_grads.shape == grads.shape
        assert (half_grads - grads).norm() < 0.2 * grads.norm()
    torch.testing.assert_close(halves[0][0], halves[1][0])  # chunks change nothing
