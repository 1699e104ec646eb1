"""The recipe that a search writes: the settings it chose, with the evidence."""

from pathlib import Path
from typing import TYPE_CHECKING

from gmn_pipeline.console.config import as_table, flatten, identity, nest
from gmn_pipeline.disk.atomic_file import write_text
from gmn_train.settings.run_settings import TrainConfig

if TYPE_CHECKING:
    from gmn_train.search.searching import SearchOutcome

LEFT_OUT = ("fingerprint", "seed", "split", "extended_from")
"""What belongs to a store or a run, not to a recipe."""


def write_recipe(file: Path, outcome: "SearchOutcome", config: TrainConfig, plain: TrainConfig, command: str) -> Path:
    """Write what was searched, and what else differs from a run without a recipe, for `--recipe FILE` to repeat."""
    import tomli_w

    assert outcome.verdict is not None
    before, searched = flatten(as_table(plain)), {"model.name", "epochs", *outcome.verdict.chosen.settings}
    changed = {
        key: value for key, value in identity(config, without=LEFT_OUT).items()
        if key in searched or before.get(key) != value
    }  # fmt: skip
    table = {"measured": measured_line(outcome, command), "train": nest(changed)}
    return write_text(file, "".join(f"# {line}\n" for line in evidence(outcome, command)) + tomli_w.dumps(table))


def measured_line(outcome: "SearchOutcome", command: str) -> str:
    """What `gmn-train run` prints of it."""
    assert outcome.verdict is not None
    chosen = outcome.verdict.chosen
    return f"Measured: validation {outcome.metric} {chosen.text}, test not looked at, by `{command}`."


def evidence(outcome: "SearchOutcome", command: str) -> list[str]:
    """The comments at the top of a recipe, and the page's first lines."""
    verdict, counts = outcome.verdict, outcome.trials
    assert verdict is not None
    control = (
        "not tried" if verdict.control is None else f"{verdict.control.first:.4f} in the search, {verdict.control.text}"
    )
    noise = "not measured" if verdict.noise is None else f"{verdict.noise:.4f}, the standard deviation of one run"
    chosen = verdict.chosen
    named = ", ".join(map(str, outcome.splits))
    means = f", each on splits {named} and counted by their mean" if len(outcome.splits) > 1 else ""
    return [
        f"Found by {command}",
        f"{sum(counts.values())} trials of {outcome.epochs} epochs{means}: {counts['COMPLETE']} complete, "
        f"{counts['PRUNED']} cut short, {counts['FAIL']} failed or interrupted. "
        "Choices by validation alone; test was never evaluated.",
        f"Chosen: trial {chosen.number}, {chosen.model}, validation {outcome.metric} {chosen.first:.4f} in the search, "
        f"{chosen.text}",
        f"Control, its best: {control}",
        f"Noise: {noise}",
        f"Verdict: {verdict.line}",
    ]
