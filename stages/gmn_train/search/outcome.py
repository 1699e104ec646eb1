"""What `gmn-train search` prints when it is done."""

from rich.console import Console

from gmn_pipeline.console.output import print_json, two_columns
from gmn_train.search.searching import Found


def report_search(found: Found, store: str, *, as_json: bool) -> None:
    """A few lines for a person, or everything as JSON."""
    verdict, counts = found.verdict, found.trials
    assert verdict is not None
    chosen, control = verdict.chosen, verdict.control
    if as_json:
        print_json(
            {
                "study": str(found.folder), "metric": found.metric, "trials": counts, "epochs": found.epochs,
                "model": chosen.model, "trial": chosen.number, "val": chosen.mean, "settings": chosen.settings,
                "control_val": None if control is None else control.mean, "noise": verdict.noise,
                "verdict": verdict.line, "recipe": str(found.recipe), "report": str(found.page),
            }
        )  # fmt: skip
        return
    tried = f"{counts['COMPLETE']} complete, {counts['PRUNED']} cut short, {counts['FAIL']} failed or interrupted"
    rows = [
        ("study", str(found.folder)),
        ("trials", f"{tried}, of {found.epochs} epochs each"),
        ("chosen", f"trial {chosen.number}, {chosen.model}: validation {found.metric} {chosen.text}"),
        *([] if control is None else [("control", f"trial {control.number}: {control.text}")]),
        ("verdict", verdict.line),
        ("report", str(found.page)),
        ("next", f"gmn-train run --store {store} --recipe {found.recipe}"),
    ]
    Console(markup=False, highlight=False).print(two_columns("", rows))
