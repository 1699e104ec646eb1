"""The loader: batches per second from a mapped store, and the share of an epoch spent waiting for data.

`full` reads chunks of tokens while it computes, with and without reading the next one ahead.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from gmn_pipeline import Graph, TokenSettings
from gmn_prep.datasets import DatasetOptions, load_dataset
from gmn_train.data.samplers import Loaded
from gmn_train.data.token_chunks import LazyChunks
from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.run_settings import TrainConfig
from gmn_train.train import train_step
from tests.benchmarks.timing import Row, side_by_side
from tests.stores import write_store
from tests.train.small_runs import prepare, settings_for, train_in

TOKENS = TokenSettings(4, 4, 2)
NODES, GRAPHS = 20_000, 1500
MODEL = ModelConfig(width=32, node_layers=2, token_blocks="input", encoder="mean")
SMALL_BUDGET = 0.05
"""GB: so little that `full` keeps no tokens and reads them by chunks, as it does with a store beyond memory."""
EPOCHS = 10


def make_configs(folder: Path) -> dict[str, TrainConfig]:
    """A run in each mode, from stores of the size that the budget calls large."""
    grid = load_dataset("minesweeper-grid", DatasetOptions(nodes=NODES)).graph
    rings: Graph = load_dataset("skip-ring", DatasetOptions(graphs=GRAPHS)).graph
    one = write_store(folder / "grid.zarr", grid, TOKENS, block_size=2048).path
    many = write_store(folder / "rings.zarr", rings, TOKENS, block_size=2048).path
    return {
        "full, by chunks": settings_for(one, model=MODEL, epochs=EPOCHS, memory_budget=SMALL_BUDGET),
        "batch": settings_for(one, model=MODEL, epochs=EPOCHS, mode="batch"),
        "graphs": settings_for(many, model=MODEL, epochs=EPOCHS),
    }


def loading_rows(configs: dict[str, TrainConfig]) -> list[Row]:
    """Seconds to make all batches of an epoch ready for the model, on one thread."""
    found = []
    for mode in ("batch", "graphs"):
        sampler = prepare(configs[mode]).sampler
        steps = sampler.training_steps(0)
        sampler.load(steps[0], 0)  # compiles
        begun = time.perf_counter()
        for step in steps:
            sampler.load(step, 0)
        seconds = (time.perf_counter() - begun) / len(steps)
        work = f"load a batch, mode {mode}: {1 / seconds:,.0f} batches/s"
        found.append(Row(work, "Sampler.load", "", seconds, float("nan")))
    return found


def chunk_row(config: TrainConfig) -> Row:
    """A training step of `full` by chunks, with and without reading ahead."""
    training = prepare(config)
    loaded = training.sampler.load(training.sampler.training_steps(0)[0], 0)
    chunks = loaded.inputs.tokens
    assert isinstance(chunks, LazyChunks)

    def step(*, ahead: bool) -> None:
        tokens = LazyChunks(chunks.sizes, chunks.load, ahead=ahead)
        again = Loaded(replace(loaded.inputs, tokens=tokens), loaded.items, loaded.y)
        train_step(training, again, 1e-3, (0, 0))

    best = side_by_side(lambda: step(ahead=True), lambda: step(ahead=False))
    work = f"step of {NODES:,} nodes in {len(chunks)} chunks, read while it runs"
    return Row(work, "next chunk read ahead", "read when needed", *best)


_lines: list[str] = []


def rows() -> list[Row]:
    """(work, ours, peer, our seconds, the peer's)"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        configs = make_configs(folder)
        found = [*loading_rows(configs), chunk_row(configs["full, by chunks"])]
        for mode, config in configs.items():
            summary = train_in(config, folder / mode)
            _lines.append(
                f"mode {mode}: {summary['seconds_per_epoch']:.2f} s per epoch over {EPOCHS} epochs, "
                f"{summary['waiting_share']:.2%} more spent waiting for data (target: under 2%)"
            )
        return found


def lines() -> list[str]:
    """What stands below the table: the trainings that `rows` has just run."""
    return _lines
