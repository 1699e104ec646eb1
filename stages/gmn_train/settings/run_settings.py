"""Everything that decides a training run, each setting declared and documented once. No torch here.

A setting that is None is chosen automatically from the store; `resolve` does that before a run starts.
"""

from dataclasses import dataclass
from typing import Literal

from gmn_pipeline.console.config import check_words, setting
from gmn_pipeline.console.machine import MOST_THREADS
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.place import StorePlace
from gmn_pipeline.store.format.words import Check
from gmn_train.settings.model_settings import ModelConfig

DATA, TRAINING, MEMORY = "Data", "Training", "Memory and speed"
Mode = Literal["full", "batch", "graphs"]
CHOSEN = ("fingerprint", "m", "M", "s", "epochs", "lr", "warmup", "eval_every", "mode", "threads")
"""Settings that are chosen automatically. A run's own file has them all."""


@dataclass(frozen=True)
class TrainConfig:
    """One training run."""

    store: StorePlace = setting(
        help="Token store to train from: data/arxiv.zarr, or s3://BUCKET/NAME.zarr.", group=DATA, affects_result=False
    )
    fingerprint: str | None = setting(
        None, help="Fingerprint of the store's content. A run refuses any other store.", group=DATA, flag=""
    )
    recipe: str | None = setting(
        None,
        help="Recipe to start from: a name, a TOML file, or `none`. Default: the store's dataset.",
        group=DATA,
        affects_result=False,
    )
    m: int | None = setting(None, help="Levels of tokens. Default: all that are stored.", group=DATA)
    M: int | None = setting(None, help="Walks per token. Default: all that are stored.", group=DATA)
    s: int | None = setting(
        None,
        help="Tokens per level, drawn anew each epoch from those stored. Default: 1.",
        group=DATA,
    )
    split: int = setting(0, help="Number of the stored split to use.", group=DATA)
    seed: int = setting(0, help="Seed of weights, dropout, shuffling and draws.", group=DATA)

    scale_features: bool = setting(
        True,
        help="Standardise feature columns that are not of order one, with statistics of the training items.",
        group=DATA,
    )
    scale_targets: bool = setting(
        True, help="Standardise regression targets, with statistics of the training items.", group=DATA
    )

    epochs: int | None = setting(
        None, help="Epochs. Default: 500 for one graph, 30 in mode `batch`, 100 for many graphs.", group=TRAINING
    )
    extended_from: tuple[int, ...] | None = setting(
        None, help="Epochs of earlier plans of a run that was trained longer.", group=TRAINING, flag=""
    )
    lr: float | None = setting(
        None,
        help="Peak learning rate. Default: 0.005 for one graph, 0.002 in mode `batch`, 0.001 for many.",
        group=TRAINING,
    )
    weight_decay: float = setting(1e-5, help="Weight decay of AdamW, on matrices only.", group=TRAINING)
    warmup: int | None = setting(
        None, help="Epochs of linear warm-up before the cosine. Default: 10, or 1 in mode `batch`.", group=TRAINING
    )
    average: float = setting(
        0.03,
        help="Evaluate and keep an average of the weights over this share of all steps. 0: the last weights.",
        group=TRAINING,
    )
    clip: float = setting(1.0, help="Largest gradient norm. 0: no clipping.", group=TRAINING)
    patience: int = setting(
        0, help="Stop early after this many epochs without a better validation. 0: never.", group=TRAINING
    )
    eval_every: int | None = setting(
        None, help="Epochs between evaluations. Default: about 200 evaluations per run.", group=TRAINING
    )
    eval_draws: int = setting(1, help="Average predictions over this many draws of tokens.", group=TRAINING)

    mode: Mode | None = setting(
        None,
        help="full: all nodes of one graph in each step, exactly; batch: batches of nodes; graphs: batches of many "
        "graphs. Default: full, batch above 50,000 nodes, or graphs if the store has many.",
        group=MEMORY,
    )
    batch_size: int = setting(64, help="Graphs per batch in mode `graphs`.", group=MEMORY)
    batch_nodes: int = setting(2048, help="Nodes per batch in mode `batch`.", group=MEMORY)
    memory_budget: float = setting(4.0, help="Memory for the activations of token blocks, in GB.", group=MEMORY)
    threads: int | None = setting(
        None, help="Threads. Default: all cores. Never changes a result.", group=MEMORY, affects_result=False
    )
    procs: int = setting(
        1,
        help="Processes on this machine that share the run. If given (even as 1), steps are split into --grains, and "
        "the number of processes does not affect the result.",
        group=MEMORY,
        affects_result=False,
    )
    grains: int | None = setting(
        None,
        help="Parts of a step, shared by the processes. Default: none; with --procs or torchrun, 8 (16 above 8 "
        "processes).",
        group=MEMORY,
    )
    loader_threads: int = setting(
        1, help="Threads that read ahead. They never change a result.", group=MEMORY, affects_result=False
    )
    device: Literal["auto", "cpu", "cuda"] = setting(
        "auto", help="Device to compute on. auto: CUDA if there is one.", group=MEMORY, affects_result=False
    )
    precision: Literal["auto", "float32", "bf16"] = setting(
        "float32",
        help="Precision of matrix products. bf16: bfloat16 if it works here; auto: if it is also faster.",
        group=MEMORY,
    )
    check: Check = setting(
        "sampled",
        help="Checksums of the store. full: all before training; sampled: each block when first read; none: never.",
        group=MEMORY,
        affects_result=False,
    )
    checkpoint_seconds: float = setting(
        30.0, help="Minimum seconds between checkpoints. 0: after every step.", group=MEMORY, affects_result=False
    )

    model: ModelConfig = setting(ModelConfig, help="The model's settings.", group="Model")

    def __post_init__(self) -> None:
        check_words(self)
        counts = ("epochs", "batch_size", "batch_nodes", "threads", "procs", "grains", "loader_threads", "eval_every")
        for name in (*counts, "eval_draws"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
        for name in ("threads", "loader_threads"):
            if (getattr(self, name) or 0) > MOST_THREADS:
                raise ConfigError(f"{name} is {getattr(self, name):,}; at most {MOST_THREADS:,} are allowed")
        for name in ("warmup", "clip", "patience", "weight_decay", "split", "seed", "checkpoint_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ConfigError(f"{name} is {value}; it must not be negative or infinite")
        if not 0 <= self.average < 1:
            raise ConfigError(f"average is {self.average}; it must lie in [0, 1)")
        for name in ("lr", "memory_budget"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ConfigError(f"{name} is {value}; it must be above 0 and finite")

    @property
    def unresolved(self) -> list[str]:
        """Settings that are still to be chosen from the store. A run's own file has none."""
        return [name for name in CHOSEN if getattr(self, name) is None]
