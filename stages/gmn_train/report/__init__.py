"""`gmn-train report`: one self-contained HTML page about a run, or about several side by side."""

import os
from pathlib import Path

from gmn_pipeline.disk.atomic_file import write_text

__all__ = ["write_report"]


def write_report(runs: list[Path], out: Path | None) -> Path:
    """Write the page and return where it is: `out`, or report.html in the run or the folder that holds all runs.

    A folder of runs stands for all of them. Raises TrainError where a path is no run, a run has measured nothing yet,
    or the page cannot be written.
    """
    from gmn_train.report.facts import find_runs, read_run, short_names
    from gmn_train.report.page import make_page

    paths = find_runs(runs)
    facts = [read_run(path, name) for path, name in zip(paths, short_names(paths), strict=True)]
    page = make_page(facts)
    if out is None:
        out = (paths[0] if len(paths) == 1 else Path(os.path.commonpath(paths))) / "report.html"
    return write_text(out, page)
