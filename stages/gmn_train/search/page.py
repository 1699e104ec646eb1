"""The page of a study: what was found, what mattered, and how the best value rose."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

import gmn_pipeline
from gmn_pipeline.disk.atomic_file import write_text
from gmn_pipeline.metrics import metric_title
from gmn_train.model.tables import CONTROL
from gmn_train.report.svg import SERIES, drawing
from gmn_train.search.recipe_file import evidence
from gmn_train.search.space import DIMENSIONS, Choice, Range
from gmn_train.search.study import SearchStudy
from gmn_train.search.verdict import Finalist

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from gmn_train.search.searching import SearchOutcome

MOST_ROWS = 20
FEWEST_TRIALS = 8
"""Below that many, importance says nothing."""


def write_page(
    file: Path, outcome: "SearchOutcome", study: SearchStudy, finalists: Sequence[Finalist], command: str
) -> Path:
    """One self-contained HTML page."""
    environment = Environment(loader=PackageLoader("gmn_train", ""), autoescape=True, trim_blocks=True)
    metric = metric_title(outcome.metric)
    figures = [("Best so far, and every trial", draw_trials(study, metric))]
    figures += [(title, draw_bars(title, shares)) for title, shares in importances(study)]
    text = environment.get_template("search/page.html.jinja").render(
        title=f"Search {outcome.folder.name}",
        evidence=evidence(outcome, command),
        metric=metric,
        finalists=finalists,
        figures=[(title, Markup(svg)) for title, svg in figures],
        first_rung=study.first_rung,
        trials=[trial_row(study, trial) for trial in study.best_first()[:MOST_ROWS]],
        space=[
            (d.name, d.line, values_text(d.values_for(study.proposals.manifest))) for d in study.proposals.dimensions
        ],
        version=gmn_pipeline.__version__,
    )
    return write_text(file, text)


def trial_row(study: SearchStudy, trial: "FrozenTrial") -> dict[str, Any]:
    settings = study.settings_of(trial)
    base = study.proposals.base
    changed = {k: v for k, v in settings.items() if base.get(k) != v and k != "model.name"}
    return {
        "number": trial.number,
        "model": settings.get("model.name", base["model.name"]),
        "value": trial.value,
        "seconds": trial.user_attrs.get("seconds"),
        "parameters": trial.user_attrs.get("parameters"),
        "changes": ", ".join(f"{key.removeprefix('model.')} {value}" for key, value in changed.items()),
    }


def values_text(values: Choice | Range) -> str:
    if isinstance(values, Choice):
        return ", ".join(map(str, values.values))
    return f"{values.low:g} to {values.high:g}" + (", by logarithm" if values.log else "")


def draw_trials(study: SearchStudy, metric: str) -> str:
    """Complete trials as full dots, those cut short as pale ones at the best they had, and the best so far."""
    with drawing("Best validation by trial") as canvas:
        ax, best = canvas.axes, np.nan
        xs, ys = list[int](), list[float]()
        for side, (name, colour) in enumerate((("with tokens or scans", SERIES[0]), (CONTROL, SERIES[1]))):
            for state, alpha in (("COMPLETE", 1.0), ("PRUNED", 0.3)):
                points = [
                    (t.number, v) for t in study.trials(state)
                    if (v := value_of(t)) is not None and is_control(study, t) == bool(side)
                ]  # fmt: skip
                label = name if points and state == "COMPLETE" else None
                ax.plot(*zip(*points, strict=True) if points else ([], []), "o", color=colour, alpha=alpha, label=label)
        for trial in study.trials("COMPLETE"):
            assert trial.value is not None
            best = (np.fmax if study.higher else np.fmin)(best, trial.value)
            xs.append(trial.number)
            ys.append(float(best))
        ax.step(xs, ys, where="post", color=SERIES[2], label="best so far")
        ax.set(xlabel="trial", ylabel=f"validation {metric}")
        ax.legend()
    return canvas.svg


def is_control(study: SearchStudy, trial: "FrozenTrial") -> bool:
    return str(study.settings_of(trial).get("model.name", study.proposals.base["model.name"])) == CONTROL


def value_of(trial: "FrozenTrial") -> float | None:
    if trial.value is not None:
        return float(trial.value)
    return trial.intermediate_values[max(trial.intermediate_values)] if trial.intermediate_values else None


def importances(study: SearchStudy) -> list[tuple[str, dict[str, float]]]:
    """By fANOVA, the share of the variance that each setting explains: over all trials, and over those with tokens.

    Trials are compared at the first rung, which all have reached: those cut short count like the others.
    """
    optuna, tables = study.optuna, []
    trials = [t for t in study.trials("COMPLETE", "PRUNED") if at_rung(study, t) is not None]
    groups = (("all trials", trials), ("GMN alone", [t for t in trials if "model.token_blocks" in t.params]))
    for title, group in groups:
        shared = set.intersection(*(set(t.params) for t in group)) if group else set()
        shared = {key for key in shared if len({t.params[key] for t in group}) > 1}
        values = {at_rung(study, t) for t in group}
        if len(group) < FEWEST_TRIALS or len(values) < 2 or len(shared) < 2:
            continue
        apart = optuna.create_study(direction=study.study.direction)
        for trial in group:
            params = {key: trial.params[key] for key in sorted(shared)}
            spaces = {key: trial.distributions[key] for key in params}
            apart.add_trial(optuna.trial.create_trial(params=params, distributions=spaces, value=at_rung(study, trial)))
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        tables.append((f"Importance, {title}", optuna.importance.get_param_importances(apart, evaluator=evaluator)))
    return tables


def at_rung(study: SearchStudy, trial: "FrozenTrial") -> float | None:
    reached = [step for step in trial.intermediate_values if step >= study.first_rung]
    return trial.intermediate_values[min(reached)] if reached else None


def draw_bars(title: str, shares: dict[str, float]) -> str:
    names = [key for key in DIMENSIONS if key in shares]
    names.sort(key=lambda key: shares[key])
    with drawing(title, height=0.8 + 0.24 * len(names)) as canvas:
        ax = canvas.axes
        ax.barh([name.removeprefix("model.") for name in names], [shares[name] for name in names], color=SERIES[0])
        ax.set(xlabel="share of the variance explained")
        ax.grid(False, axis="y")
    return canvas.svg
