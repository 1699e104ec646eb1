"""One exact training epoch of ogbn-arxiv at 8/4/2 in `full` mode: seconds, peak memory, and where the time goes."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.machine import peak_memory
from gmn_pipeline.store.format.blocks import default_block_size
from gmn_train.data.steps import WHOLE_GRAPH
from gmn_train.learning.losses import task_loss
from gmn_train.settings.model_settings import ModelConfig
from tests.benchmarks.arxiv import arxiv_graph
from tests.benchmarks.timing import Row
from tests.benchmarks.train.bench_bimamba import profile_parts, shares_text
from tests.stores import write_store
from tests.train.small_runs import prepare, settings_for

SETTINGS = TokenSettings(8, 4, 2)
MODEL = ModelConfig(width=64, node_layers=4, token_blocks="input", token_layers=2, encoder="mean", feature_mask=0.0)
_found: dict[str, object] = {}


def measure_here(path: Path) -> dict[str, object]:
    """A first epoch plain, for its seconds and the peak; a second under the profiler, for the parts."""
    training = prepare(settings_for(path, mode="full", model=MODEL, memory_budget=0.5))
    sampler, model, optimizer = training.sampler, training.model.train(), training.optimizer
    items = torch.from_numpy(sampler.data.items["train"])

    def epoch() -> None:
        loaded = sampler.load(WHOLE_GRAPH, 0)
        assert loaded.y is not None
        loss = task_loss(sampler.data.task, model(loaded.inputs).logits[items], loaded.y[items], None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    begun = time.perf_counter()
    epoch()
    seconds, peak = time.perf_counter() - begun, peak_memory()
    return {"seconds": seconds, "peak": peak, "parts": profile_parts(epoch)}


def rows() -> list[Row]:
    name, _ = arxiv_graph()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arxiv.zarr"
        write_store(path, arxiv_graph()[1], SETTINGS, block_size=default_block_size(SETTINGS), threads=2)
        command = [sys.executable, "-m", "tests.benchmarks.train.bench_epoch", str(path)]
        _found.update(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return [
        Row(f"training epoch, {name}, 8/4/2, width 64", "GMN, full, by chunks", "", _found["seconds"], float("nan"))
    ]


def lines() -> list[str]:
    parts = shares_text(_found["parts"])  # type: ignore[arg-type]
    return [f"epoch of ogbn-arxiv: peak memory {_found['peak'] / 1e9:.2f} GB (mark: 3.85 GB); {parts}"]  # type: ignore[operator]


if __name__ == "__main__":
    print(json.dumps(measure_here(Path(sys.argv[1]))))
