"""`gmn-train runs`: every run in a folder, and where it stands. No torch here."""

import csv
import io
from pathlib import Path
from typing import Any

from rich.console import Console

from gmn_pipeline.console.output import plain_table, print_json
from gmn_pipeline.disk.lock import is_locked
from gmn_pipeline.errors import TrainError
from gmn_train.runs.folder import RunFolder
from gmn_train.runs.naming import runs_in

COLUMNS = ("name", "store", "model", "metric", "val", "test", "epochs", "state")


def describe_folder(path: Path, root: Path) -> dict[str, Any]:
    """One line of the table; a damaged run is a line, too."""
    name = str(path.relative_to(root)) if path != root else path.name
    try:
        folder = RunFolder(path)
        config, summary, rows = folder.config(), folder.summary(), folder.metrics()
    except TrainError as error:
        return {"name": name, "state": f"damaged: {error}"}
    state = "finished" if summary is not None else "training" if is_locked(path) else "interrupted"
    done = summary["epochs"] if summary is not None else rows[-1]["epoch"] + 1 if rows else 0
    facts = {"name": name, "store": config.store.name, "model": config.model.name, "state": state}
    result = {key: (summary or {}).get(key) for key in ("metric", "val", "test")}
    return {**facts, **result, "epochs": done, "of": config.epochs}


def print_runs(root: Path, *, as_json: bool) -> None:
    """The table of all runs in `root`."""
    lines = [describe_folder(path, root) for path in runs_in(root)]
    if as_json:
        print_json(lines)
        return
    console = Console(markup=False, highlight=False)
    if not lines:
        console.print(f"no runs in {root}; gmn-train run makes one")
        return
    table = plain_table()
    for column in COLUMNS:
        table.add_column(column, overflow="fold", justify="right" if column in ("val", "test", "epochs") else "left")
    for line in lines:
        shown = {**line, "epochs": f"{line['epochs']}/{line['of']}" if "epochs" in line else ""}
        table.add_row(*(_cell(shown.get(column)) for column in COLUMNS))
    console.print(table)


def _cell(value: Any) -> Any:
    from rich.text import Text

    return Text("" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value))


def metrics_csv(runs: list[Path]) -> str:
    """metrics.jsonl of runs as one CSV table, a row per run and epoch."""
    rows = [{"run": str(path), **row} for path in runs for row in RunFolder(path).metrics()]
    columns = list(dict.fromkeys(key for row in rows for key in row)) or ["run", "epoch"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
