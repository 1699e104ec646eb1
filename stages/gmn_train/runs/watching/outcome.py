"""What `gmn-train` prints when it is done."""

from statistics import fmean
from typing import Any

from rich.console import Console

from gmn_pipeline.console.output import plain_table, print_json, size_text, spread_text, two_columns
from gmn_train.model.tables import CONTROL
from gmn_train.runs.start import Finished, Planned, average_runs
from gmn_train.runs.watching.pace import duration_text, epoch_text


def report_runs(runs: list[Finished], *, as_json: bool) -> None:
    """The closing table of one run, or of several with mean and standard deviation."""
    if as_json:
        facts = [_facts(run) for run in runs]
        print_json(facts[0] if len(facts) == 1 else {"runs": facts, "test": average_runs(runs)})
        return
    console = Console(markup=False)  # a path may hold [square brackets]
    if len(runs) == 1:
        _report_one(runs[0], console)
        _report_controls(runs, console)
        return
    table = plain_table()
    for column in ("seed", "split", "best epoch", "val", "test", "s/epoch"):
        table.add_column(column, justify="right")
    for run in runs:
        s = run.summary
        table.add_row(
            str(s["seed"]), str(s["split"]), str(s["best_epoch"] + 1), f"{s['val']:.4f}", f"{s['test']:.4f}",
            f"{s['seconds_per_epoch']:.2f}",
        )  # fmt: skip
    console.print(table)
    for name, spread in average_runs(runs).items():
        if spread["count"] > 1:
            count, metric = int(spread["count"]), runs[0].summary["metric"]
            console.print(f"test {metric} over {count} {name}: {spread['mean']:.4f} ± {spread['std']:.4f}")
    _report_controls(runs, console)
    console.print(f"runs in {runs[0].path.parent}")


def _facts(run: Finished) -> dict[str, Any]:
    controls = {which: _facts(control) for which, control in run.controls.items()}
    facts = {"run": str(run.path), "found": run.existed, **run.summary}
    return {**facts, "controls": controls} if controls else facts


def _report_controls(runs: list[Finished], console: Console) -> None:
    """The runs and their controls in a line each, the means of several."""
    if not runs[0].controls:
        return
    table = plain_table()
    table.add_column("beside its control", no_wrap=True)
    for column in ("val", "test", "epochs", "seconds"):
        table.add_column(column, justify="right")
    sides = {runs[0].summary["model"]: [run.summary for run in runs]}
    for which in runs[0].controls:
        sides[f"{CONTROL}, {which}"] = [run.controls[which].summary for run in runs]
    for name, summaries in sides.items():
        values = [spread_text([s[part] for s in summaries]) for part in ("val", "test")]
        seconds, epochs = fmean(s["seconds"] for s in summaries), fmean(s["epochs"] for s in summaries)
        table.add_row(name, *values, f"{epochs:.0f}", f"{seconds:.1f}")
    console.print(table)


def _report_one(run: Finished, console: Console) -> None:
    s = run.summary
    rows = [
        ("run", f"{run.path}{' (already finished)' if run.existed else ''}"),
        (
            "test",
            f"{s['test']:.4f} {s['metric']}, at the best validation ({s['val']:.4f}) of epoch {s['best_epoch'] + 1}",
        ),
        (
            "time",
            f"{s['seconds']:.1f} s, {s['seconds_per_epoch']:.2f} per epoch, {s['waiting_share']:.1%} waiting for data",
        ),
        ("memory", f"{s['peak_memory_bytes'] / 1e6:,.0f} MB at the peak"),
        ("model", f"{s['parameters']:,} parameters, mode {s['mode']}, {s.get('precision', 'float32')}"),
        ("next", f"gmn-train report {run.path}"),
    ]
    console.print(two_columns("", rows))


def report_plan(plan: Planned, count: int, *, as_json: bool) -> None:
    """What `gmn-train run --dry-run` prints. count: runs of the command."""
    header, estimate = plan.header, plan.estimate
    config = header.config
    if as_json:
        facts: dict[str, Any] = {
            "run": str(header.path), "store": str(config.store), "model": config.model.name, "recipe": config.recipe,
            "mode": config.mode, "device": header.device, "epochs": config.epochs, "parameters": header.parameters,
            "training_items": header.training_items, "not_read": list(header.unread), "runs": count,
            "estimate": None if estimate is None else vars(estimate),
            "estimate_of": "one process in one piece", "processes": config.procs, "grains": plan.grains,
        }  # fmt: skip
        print_json(facts)
        return
    console = Console(markup=False, highlight=False)
    for line in header.lines:
        console.print(line)
    if estimate is None:
        console.print("estimate: none, because the first step fails; start the run to see why")
        return
    each = epoch_text(estimate.seconds_per_epoch)
    runs = "" if count == 1 else f" per run, {duration_text(estimate.seconds * count)} for all {count}"
    rows = [
        ("memory", f"about {size_text(estimate.memory_bytes)}"),
        ("time", f"about {duration_text(estimate.seconds)}: {config.epochs} epochs of {each}{runs}"),
        ("run", f"{header.path} (not written: dry run)"),
    ]
    if plan.grains is not None:
        cut = f"{config.procs} process{'es' * (config.procs > 1)} and {plan.grains} grains"
        rows.insert(0, ("of", f"one process in one piece, as without --procs; this run has {cut}"))
    console.print(two_columns("estimate", rows))
