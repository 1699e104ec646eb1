"""Several runs beside each other: which settings differ, and the spread over seeds and splits of the same settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gmn_pipeline.console.config import walk_fields
from gmn_train.report.facts import RunFacts
from gmn_train.runs.start import Finished, average_runs
from gmn_train.settings.run_settings import TrainConfig

LONGEST_LABEL = 60
TELLING = {key for key, item in walk_fields(TrainConfig) if item.metadata["affects_result"]} - {"seed", "split"}
"""The settings that tell groups of runs apart."""


@dataclass(frozen=True)
class Group:
    """Runs of the same settings on the same store; they differ in seed and split only."""

    label: str
    runs: list[RunFacts]
    spread: dict[str, dict[str, float]]
    """Of the test metric of finished runs: over `runs`, `seeds` and `splits`, each count, mean and std."""


def group_runs(runs: Sequence[RunFacts]) -> list[Group]:
    """Groups in the order of their first runs."""
    by_content: dict[str, list[RunFacts]] = {}
    for run in runs:
        by_content.setdefault(repr(_content(run)), []).append(run)
    labels = _labels([members[0] for members in by_content.values()])
    return [Group(label, members, _spread(members)) for label, members in zip(labels, by_content.values(), strict=True)]


def _content(run: RunFacts) -> dict[str, Any]:
    """What tells groups apart."""
    return {key: value for key, value in run.settings.items() if key in TELLING}


def _spread(runs: list[RunFacts]) -> dict[str, dict[str, float]]:
    done = [Finished(run.path, run.summary) for run in runs if run.summary is not None]
    return average_runs(done) if done else {}


def _labels(firsts: list[RunFacts]) -> list[str]:
    """What is special about each group: `token_blocks=none`; its letter alone where that would be too long."""
    letters = [chr(65 + i) if i < 26 else str(i + 1) for i in range(len(firsts))]
    differing = [key for key in differing_settings(firsts) if key in TELLING - {"fingerprint"} or key == "store"]
    labels = []
    for letter, run in zip(letters, firsts, strict=True):
        text = ", ".join(f"{key.removeprefix('model.')}={setting_text(run.settings[key])}" for key in differing)
        labels.append(f"{letter}: {text}" if text and len(text) <= LONGEST_LABEL else letter)
    return labels


def differing_settings(runs: Sequence[RunFacts]) -> list[str]:
    """The names of settings that are not the same in all runs."""
    names = dict.fromkeys(key for run in runs for key in run.settings)
    return [name for name in names if len({repr(run.settings.get(name)) for run in runs}) > 1]


def setting_text(value: Any) -> str:
    """A setting as a person writes it."""
    if value is None:
        return "auto"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
