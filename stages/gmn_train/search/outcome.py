"""What `gmn-train search` prints when it is done."""

from rich.console import Console

from gmn_pipeline.console.output import print_json, two_columns
from gmn_train.search.searching import SearchOutcome


def report_search(outcome: SearchOutcome, store: str, *, as_json: bool) -> None:
    """A few lines for a person, or everything as JSON."""
    verdict, counts = outcome.verdict, outcome.trials
    assert verdict is not None
    chosen, control = verdict.chosen, verdict.control
    if as_json:
        print_json(
            {
                "study": str(outcome.folder), "metric": outcome.metric, "trials": counts, "epochs": outcome.epochs,
                "model": chosen.model, "trial": chosen.number, "val": chosen.mean, "settings": chosen.settings,
                "control_val": None if control is None else control.mean, "noise": verdict.noise,
                "verdict": verdict.line, "recipe": str(outcome.recipe), "report": str(outcome.page),
            }
        )  # fmt: skip
        return
    tried = f"{counts['COMPLETE']} complete, {counts['PRUNED']} cut short, {counts['FAIL']} failed or interrupted"
    rows = [
        ("study", str(outcome.folder)),
        ("trials", f"{tried}, of {outcome.epochs} epochs each"),
        ("chosen", f"trial {chosen.number}, {chosen.model}: validation {outcome.metric} {chosen.text}"),
        *([] if control is None else [("control", f"trial {control.number}: {control.text}")]),
        ("verdict", verdict.line),
        ("report", str(outcome.page)),
        ("next", f"gmn-train run --store {store} --recipe {outcome.recipe}"),
    ]
    Console(markup=False, highlight=False).print(two_columns("", rows))
