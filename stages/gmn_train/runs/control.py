"""A run's own control: its message passing alone, with the same other settings, at equal epochs and equal seconds."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from gmn_pipeline.errors import ConfigError, TrainError
from gmn_train.model.tables import CONTROL, MODELS
from gmn_train.runs.folder import RunFolder, default_run_dir
from gmn_train.settings.run_settings import TrainConfig

EQUAL_EPOCHS, EQUAL_SECONDS = "equal epochs", "equal seconds"
FILE = "controls.json"


def control_of(config: TrainConfig) -> TrainConfig:
    """The settings of a run's control; ConfigError where it can have none."""
    model = config.model
    if model.name == CONTROL or model.model.code != MODELS[CONTROL].code:
        raise ConfigError(f"--with-control is for models with tokens or scans; {model.name} has no control of its own")
    try:
        return replace(config, model=model.changed(name=CONTROL, **MODELS[CONTROL].fixes))
    except ConfigError as error:
        raise ConfigError(f"{model.name} at these settings has no control: {error}") from None


def as_many_epochs(control: TrainConfig, run: dict[str, Any]) -> TrainConfig:
    """The control with as many epochs as the run trained, all of them: one that stopped early is no equal.

    run: its summary.
    """
    return replace(control, epochs=max(int(run["epochs"]), 1), patience=0)


def as_long_as(control: TrainConfig, run: dict[str, Any], beside: dict[str, Any]) -> TrainConfig:
    """The control with as many epochs as fit the run's seconds, its schedule planned for them.

    run, beside: summaries of the run, and of its control at equal epochs, whose pace counts.
    """
    each = beside["seconds"] / max(beside["epochs"], 1)
    return replace(control, epochs=max(int(run["seconds"] / max(each, 1e-9)), 1))


def control_dir(config: TrainConfig, run: Path, run_dir: Path | None, which: str) -> Path:
    """A sibling of the run's folder. run_dir: where the user put the run, if anywhere."""
    if run_dir is None:
        return default_run_dir(config)
    return run.with_name(f"{run.name}-control{'-seconds' if which == EQUAL_SECONDS else ''}")


def note_controls(run: Path, controls: dict[str, Path]) -> None:
    """Leave word in the run's folder, for its report; paths as seen from there."""
    places = {which: os.path.relpath(path, run) for which, path in controls.items()}
    folder = RunFolder(run)
    with folder.replacing(run / FILE) as aside:
        aside.write_text(json.dumps(places, indent=2), encoding="utf-8")


def find_controls(run: Path) -> dict[str, Path]:
    """Controls that were trained beside a run, as far as they are still there."""
    try:
        places = json.loads((run / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise TrainError(f"{run / FILE} cannot be read ({error}); remove it") from None
    paths = {which: Path(os.path.normpath(run / place)) for which, place in places.items()}
    return {which: path for which, path in paths.items() if RunFolder(path).exists}
