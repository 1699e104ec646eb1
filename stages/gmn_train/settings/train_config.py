"""A run's settings with the model's among them: a table of its own, `--set model.width=96` or `[model]` in TOML."""

from dataclasses import dataclass, field

from gmn_train.settings.model_settings import ModelConfig
from gmn_train.settings.run_settings import LoopConfig


@dataclass(frozen=True)
class TrainConfig(LoopConfig):
    """Everything that decides a run."""

    model: ModelConfig = field(
        default_factory=lambda: ModelConfig.preset("default"),
        metadata={"help": "The model's settings.", "group": "Model", "flag": None},
    )
