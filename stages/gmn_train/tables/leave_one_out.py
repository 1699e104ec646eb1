"""Settings tried on many datasets, and for each dataset the result of those that the others would choose.

A figure on the data that settings were tuned on says nothing to a user with new data. Here each dataset is left out of
the choice in turn: the settings with the least mean shortfall from the best validation of the others are scored on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from gmn_pipeline.console.config import fit_table, read_toml
from gmn_pipeline.console.output import spread_text
from gmn_pipeline.errors import ConfigError
from gmn_pipeline.place import StorePlace
from gmn_train.model.tables import CONTROL
from gmn_train.tables.running import RowResult
from gmn_train.tables.spec import STRICT, RowSpec, TableSpec, check_rows
from gmn_train.tables.writing import row_command


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset that all settings are tried on."""

    __pydantic_config__ = STRICT
    dataset: str
    seeds: str = "0"
    splits: str = "0"
    store: StorePlace | None = None
    tokenize: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TriedSettings:
    """Settings that are tried on all datasets."""

    __pydantic_config__ = STRICT
    label: str
    set: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LeaveOneOutSpec:
    """A whole file: `[[settings]]` x `[[dataset]]`, each with the model and with its control."""

    __pydantic_config__ = STRICT
    title: str
    dataset: list[DatasetSpec]
    settings: list[TriedSettings]
    note: str = ""
    model: str = "gmn"

    @property
    def table(self) -> TableSpec:
        """Every run that is needed, as a table with a row for each cell."""
        rows = [
            RowSpec(
                dataset=place.dataset,
                model=model,
                label=_label(tried.label, model, place.dataset),
                seeds=place.seeds,
                splits=place.splits,
                set=tried.set,
                tokenize=place.tokenize,
                store=place.store,
            )
            for tried in self.settings
            for place in self.dataset
            for model in (self.model, CONTROL)
        ]
        return TableSpec(self.title, rows, self.note)


def read_leave_one_out(file: Path) -> LeaveOneOutSpec | None:
    """A table's file if it has `[[settings]]`; ConfigError says in one line what is wrong with it."""
    if "settings" not in (table := read_toml(file)):
        return None
    spec = fit_table(LeaveOneOutSpec, table, file)
    if len(spec.dataset) < 2 or not spec.settings:
        raise ConfigError(f"{file} needs at least two [[dataset]] and one [[settings]] to leave one out")
    check_rows(file, spec.table.row)
    return spec


def choose_on_others(validation: Mapping[str, Mapping[str, float]], left_out: str) -> str | None:
    """The settings whose validation is least below the best of each dataset, on average over all but one dataset.

    validation: by settings and dataset. None where nothing was run on every other dataset.
    """
    others = {name for values in validation.values() for name in values} - {left_out}
    complete = {label: values for label, values in validation.items() if others <= set(values)}
    if not others or not complete:
        return None
    best = {name: max(values[name] for values in complete.values()) for name in others}
    return min(complete, key=lambda label: fmean(best[name] - complete[label][name] for name in sorted(others)))


def leave_one_out_markdown(spec: LeaveOneOutSpec, results: Sequence[RowResult]) -> str:
    """One section: what every setting scored where, and what the choice by the others scored."""
    cells = {r.row.name: r for r in results if r.summaries}

    def mean(label: str, model: str, dataset: str, part: str) -> float | None:
        cell = cells.get(_label(label, model, dataset))
        return None if cell is None else fmean(s[part] for s in cell.summaries)

    datasets, labels = [place.dataset for place in spec.dataset], [tried.label for tried in spec.settings]
    validation = {
        label: {d: value for d in datasets if (value := mean(label, spec.model, d, "val")) is not None}
        for label in labels
    }
    text = [f"## {spec.title}", "", *([spec.note.strip(), ""] if spec.note else [])]
    text += ["| left out | chosen on the others | test | its control | runs |", "|---|---|---:|---:|---:|"]
    for dataset in datasets:
        label = choose_on_others(validation, dataset)
        both = [cells.get(_label(label or "", model, dataset)) for model in (spec.model, CONTROL)]
        shown = [spread_text([s["test"] for s in cell.summaries]) if cell else "not run" for cell in both]
        runs = len(both[0].summaries) if both[0] else 0
        text.append(f"| {dataset} | {label or 'not run'} | {' | '.join(shown)} | {runs} |")
    text += ["", "Validation / test of every setting that was tried, means over the same runs:", ""]
    text += ["| settings | model | " + " | ".join(datasets) + " |", "|---|---" + "|---:" * len(datasets) + "|"]
    for label in labels:
        for model in (spec.model, CONTROL):
            pairs = [[mean(label, model, d, part) for part in ("val", "test")] for d in datasets]
            shown = [" / ".join(f"{value:.4f}" for value in pair if value is not None) or "–" for pair in pairs]
            text.append(f"| {label} | {model} | {' | '.join(shown)} |")
    first = spec.table.row[0]
    return "\n".join([*text, "", "Such a cell is", "", "```", row_command(first), "```", ""])


def _label(settings: str, model: str, dataset: str) -> str:
    return f"{settings}, {model}, {dataset}"
