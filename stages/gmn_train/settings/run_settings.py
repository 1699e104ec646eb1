"""Everything `gmn-train run` can be told beside the model, each setting declared and documented once. No torch here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gmn_pipeline.console.config import setting
from gmn_pipeline.errors import ConfigError

DATA, TRAINING, MEMORY, RUN = "Data", "Training", "Memory and speed", "Run folder"


@dataclass(frozen=True)
class LoopConfig:
    """One training run, whatever the model."""

    store: Path = setting(help="Token store to train from, such as data/arxiv.zarr.", group=DATA)
    m: int | None = setting(None, help="Use levels up to this, if fewer than stored.", group=DATA)
    M: int | None = setting(None, help="Use this many walks per token, if fewer than stored.", group=DATA)
    s: int | None = setting(None, help="Tokens per level, if fewer than stored: drawn anew each epoch.", group=DATA)
    split: int = setting(0, help="Which of the stored splits.", group=DATA)
    seed: int = setting(0, help="Seed of weights, dropout, shuffling and draws.", group=DATA)

    epochs: int | None = setting(None, help="Epochs; 200 for one graph, 100 for many, unless given.", group=TRAINING)
    lr: float | None = setting(None, help="Peak learning rate; 0.005 for one graph, 0.001 for many.", group=TRAINING)
    weight_decay: float = setting(1e-5, help="AdamW's, on matrices only.", group=TRAINING)
    warmup: int = setting(10, help="Epochs of linear warm-up before the cosine.", group=TRAINING)
    clip: float = setting(1.0, help="Largest gradient norm; 0 for none.", group=TRAINING)
    patience: int = setting(
        0, help="Stop after this many epochs without a better validation; 0: never.", group=TRAINING
    )
    eval_every: int = setting(1, help="Epochs between evaluations.", group=TRAINING)
    eval_draws: int = setting(1, help="Draws of repeats to average predictions over.", group=TRAINING)

    mode: Literal["auto", "full", "batch"] = setting(
        "auto", help="One graph: scan all nodes, exactly, or the nodes of a batch.", group=MEMORY
    )
    batch_size: int = setting(64, help="Graphs per batch (many graphs).", group=MEMORY)
    batch_nodes: int = setting(2048, help="Nodes per batch in mode `batch`.", group=MEMORY)
    memory_budget: float = setting(4.0, help="GB that activations of token blocks may take.", group=MEMORY)
    threads: int | None = setting(None, help="Threads; all cores unless given.", group=MEMORY)
    loader_threads: int = setting(1, help="Threads that read ahead. Never changes a result.", group=MEMORY)
    device: Literal["auto", "cpu", "cuda"] = setting("auto", help="Where to compute.", group=MEMORY)
    precision: Literal["auto", "float32", "bf16"] = setting(
        "float32", help="Of matrix products; bf16, or auto, only where a probe shows it to be faster.", group=MEMORY
    )

    run_dir: Path | None = setting(None, help="Folder of the run; data/runs/... unless given.", group=RUN)
    checkpoint_seconds: float = setting(30.0, help="Least seconds between checkpoints; 0: every step.", group=RUN)
    force: bool = setting(False, help="Start anew even if the run exists.", group=RUN)

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "batch_nodes", "threads", "loader_threads", "eval_every", "eval_draws"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
        for name in ("warmup", "clip", "patience", "weight_decay", "split", "seed", "checkpoint_seconds"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must not be negative")
        if (self.lr is not None and self.lr <= 0) or self.memory_budget <= 0:
            raise ConfigError("lr and memory_budget must be above 0")
