"""Saving and restoring a run: where it is, its weights, and the state of its optimizer."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gmn_pipeline.errors import TrainError, one_line
from gmn_train.data.read_ahead import Clock
from gmn_train.learning.averaging import WeightAverage
from gmn_train.learning.optimizer import AdamW
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.refusals import check_best
from gmn_train.settings.run_settings import TrainConfig

FORMAT = 3


@dataclass
class Progress:
    """Where a run is; everything but weights that a resume needs."""

    epoch: int = 0
    step: int = 0
    """Steps of this epoch already done."""
    loss_sum: float = 0.0
    loss_count: int = 0
    best: float = math.nan
    best_epoch: int = -1
    test_at_best: float = math.nan
    clock: Clock = field(default_factory=Clock)
    """Of all sittings together."""


class Checkpoints:
    """last.pt and best.safetensors of a run. Both are loadable without running code."""

    def __init__(self, folder: RunFolder, config: TrainConfig) -> None:
        self.folder, self.config = folder, config

    def save(self, model: nn.Module, average: WeightAverage, optimizer: AdamW, progress: Progress) -> None:
        """Everything a resume needs."""
        if not self.folder.writes:
            return
        state = {
            "format": FORMAT,
            "fingerprint": self.config.fingerprint,
            "progress": asdict(progress),
            "model": model.state_dict(),
            "average": average.state_dict(),
            "optimizer": optimizer.state_dict(),
        }
        with self.folder.replacing(self.folder.last) as aside:
            torch.save(state, aside)

    def restore(self, model: nn.Module, average: WeightAverage, optimizer: AdamW) -> Progress:
        """Put the last checkpoint into its parts; a run without one begins anew."""
        state = self.load()
        progress = Progress()
        if state is not None:
            try:
                load_weights(model, state["model"], str(self.folder.last))
                average.load_state_dict(state["average"])
                optimizer.load_state_dict(state["optimizer"])
                clock = state["progress"].pop("clock")
                if not all(
                    isinstance(number, int | float) for number in (*state["progress"].values(), *clock.values())
                ):
                    raise ValueError("its progress is not numbers")
                progress = Progress(**state["progress"], clock=Clock(**clock))
            except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
                reason = f"{type(error).__name__}: {one_line(error)}"
                raise TrainError(
                    f"{self.folder.last} is not a checkpoint of this model ({reason}); start again with --force"
                ) from error
        self.folder.keep_metrics_before(progress.epoch)  # rows of epochs that will be run again
        return progress

    def load(self) -> dict[str, Any] | None:
        """The last checkpoint as it was saved; None where there is none yet."""
        file = self.folder.last
        if not file.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(file, weights_only=True)
        except Exception as error:  # torch fails in many ways on a damaged file
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise TrainError(f"{file} cannot be read ({reason}); start again with --force") from None
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise TrainError(f"{file} is not a checkpoint of this version; start again with --force")
        if state["fingerprint"] != self.config.fingerprint:
            raise TrainError(
                f"the checkpoint in {self.folder.path} was made from another store (fingerprint "
                f"{state['fingerprint'][:12]}, this one is {str(self.config.fingerprint)[:12]}); use that store, or "
                "another --run-dir"
            )
        return state

    def save_best(self, model: nn.Module) -> None:
        """The weights that predictions are made with."""
        if not self.folder.writes:
            return
        from safetensors.torch import save_file

        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}  # shared ones are refused
        with self.folder.replacing(self.folder.best) as aside:
            save_file(weights, aside)

    def load_best(self, model: nn.Module) -> None:
        """Put the best weights into `model`."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        file = self.folder.best
        check_best(self.folder)
        try:
            weights = load_file(file)
        except (SafetensorError, OSError) as error:
            raise TrainError(f"{file} cannot be read ({error}); start again with --force") from None
        load_weights(model, weights, str(file))


def load_weights(model: nn.Module, weights: dict[str, Tensor], where: str) -> None:
    """Load weights, or say in one line that they belong to another model or store."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise TrainError(f"{where} does not fit this store and model: {first}") from None
