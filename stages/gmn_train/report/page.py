"""The page: facts, comparison and figures put into the template."""

import math
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

import gmn_pipeline
from gmn_pipeline.console.output import size_text
from gmn_pipeline.metrics import metric_title
from gmn_train.report.comparison import Group, differing_settings, group_runs, setting_text
from gmn_train.report.facts import RunFacts, curve
from gmn_train.report.figures import Curve, draw_curves, draw_deviations, draw_levels
from gmn_train.report.svg import SERIES
from gmn_train.report.task_figures import TEST, VAL, Figures, binary_curves, task_figures


def make_page(runs: Sequence[RunFacts]) -> str:
    """The whole page as one text that needs nothing else."""
    groups = group_runs(runs)
    colours = series_colours(runs, groups)
    several = len(runs) > 1
    context: dict[str, Any] = {
        "title": f"{len(runs)} runs compared" if several else runs[0].name,
        "runs": [run_context(run, colours[run.name], several) for run in runs],
        "groups": [group_context(group, colours[group.runs[0].name]) for group in groups],
        "differing": [
            (name, [setting_text(run.settings.get(name)) for run in runs]) for name in differing_settings(runs)
        ],
        "overview": [(title, Markup(svg)) for title, svg in overview(runs, colours)],
        "version": gmn_pipeline.__version__,
    }
    environment = Environment(loader=PackageLoader("gmn_train", ""), autoescape=True, trim_blocks=True)
    environment.filters |= {
        "number": number_text,
        "size": lambda count: "–" if count is None else size_text(count),
        "count": count_text,
    }
    return environment.get_template("report/page.html.jinja").render(context)


def series_colours(runs: Sequence[RunFacts], groups: Sequence[Group]) -> dict[str, str]:
    """A colour per group; per run where all are of one group."""
    if len(groups) == 1:
        return {run.name: SERIES[i % len(SERIES)] for i, run in enumerate(runs)}
    return {run.name: SERIES[i % len(SERIES)] for i, group in enumerate(groups) for run in group.runs}


def metric_name(run: RunFacts) -> str:
    return metric_title(run.metric or "metric")


def overview(runs: Sequence[RunFacts], colours: dict[str, str]) -> Figures:
    """Curves of all runs, and of several what their predictions and scans have in common."""
    one = len(runs) == 1
    figures = [
        ("Training loss", draw_curves("Training loss", "loss", [_line(r, "loss", colours[r.name]) for r in runs]))
    ]
    for metric in dict.fromkeys(map(metric_name, runs)):
        of_metric = [run for run in runs if metric_name(run) == metric]
        if one:
            lines = [_line(runs[0], "val", VAL, "validation"), _line(runs[0], "test", TEST, "test")]
            figures.append((metric[0].upper() + metric[1:], draw_curves(metric, metric, lines)))
            continue
        for part, words in (("val", "validation"), ("test", "test")):
            title = f"{metric[0].upper()}{metric[1:]}, {words}"
            figures.append((title, draw_curves(title, metric, [_line(r, part, colours[r.name]) for r in of_metric])))
    if not one:
        known = [(colours[run.name], run.evidence) for run in runs if run.evidence is not None]
        tests = [
            (None, colour, *evidence.parts["test"]) for colour, evidence in known if evidence.task.kind == "binary"
        ]
        figures += [(f"{title}, test", svg) for title, svg in binary_curves("All runs", tests)]
        deltas = [(colour, evidence.deltas.mean(0)) for colour, evidence in known if evidence.deltas is not None]
        if deltas:
            figures.append(("Selection by token level", draw_levels("All runs: selection", deltas)))
    return figures


def _line(run: RunFacts, key: str, colour: str, label: str | None = None) -> Curve:
    x, y = curve(run.rows, key)
    return Curve(x, y, colour, label, mark=run.result.best_epoch)


def run_context(run: RunFacts, colour: str, several: bool) -> dict[str, Any]:
    """What the template says about one run."""
    evidence = run.evidence
    figures: Figures = [] if evidence is None else task_figures(run.name, evidence)
    levels: Figures = []
    if evidence is not None and evidence.deltas is not None:
        title = f"{run.name}: selection"
        levels.append(("Mean over all token scans", draw_levels(title, [(colour, evidence.deltas.mean(0))])))
        svg = draw_deviations(f"{title} by scan", evidence.deltas, evidence.scans)
        levels.append(("By token scan, against the scan's own mean", svg))
    facts = evidence.facts if evidence is not None else known_facts(run)
    return {
        "run": run,
        "colour": colour,
        "metric": metric_name(run),
        "figures": [(title, Markup(svg)) for title, svg in figures],
        "levels": [(title, Markup(svg)) for title, svg in levels],
        "facts": facts,
        "versions": (run.summary or {}).get("versions", {}),
        "settings": [(name, setting_text(value)) for name, value in run.settings.items()],
        "open": not several,
    }


def known_facts(run: RunFacts) -> dict[str, str]:
    """What a run's summary says of its store, where the store cannot be read."""
    if run.summary is None:
        return {"store": str(run.settings["store"])}
    store, t = run.summary["store"], run.summary["tokens"]
    tokens = f"m={t['m']} M={t['M']} s={t['s']}, {t['walk']} walks"
    return {"store": store["name"], "fingerprint": store["fingerprint"], "tokens": tokens, "mode": run.summary["mode"]}


def group_context(group: Group, colour: str) -> dict[str, Any]:
    return {"group": group, "colour": colour, "metric": metric_name(group.runs[0])}


def number_text(value: float | None, digits: int = 4) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def count_text(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
