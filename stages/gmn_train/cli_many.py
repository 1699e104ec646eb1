"""Commands of `gmn-train` that make many runs: tables and searches."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gmn_pipeline.console.cli import command_line, takes_config
from gmn_train.cli_options import Change, Json, ModelName, Quiet
from gmn_train.settings.run_settings import TrainConfig


def table(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="Tables to make, TOML files.")],
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the tables. Runs are in data/runs.")] = Path(
        "data/tables"
    ),
    jobs: Annotated[int, typer.Option(metavar="N", help="Runs at a time.")] = 1,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Threads of each run.", show_default=False)] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write all tables into one page.", show_default=False)
    ] = None,
    only_write: Annotated[
        bool, typer.Option("--only-write", help="Write tables from finished runs; start none.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run a table of models, seeds and splits and write it as Markdown and HTML. Finished runs are skipped."""
    from gmn_train.tables.making import make_tables, write_results

    def say(text: str) -> None:
        if not quiet:
            print(text, flush=True)

    tables = make_tables(specs, out, workers=jobs, threads=threads, only_write=only_write, say=say)
    for made in tables:
        say(
            f"{made.markdown} and {made.page.name}"
            + (f"; {made.open_runs} runs are not finished" if made.open_runs else "")
        )
    if markdown is not None:
        say(f"{write_results(tables, markdown)}")


@takes_config(TrainConfig)
def search(
    request: tuple[Path | None, dict[str, Any]],
    *,
    budget: Annotated[str, typer.Option(help="Time limit for the search, such as 30m or 2h.", metavar="TIME")],
    model: ModelName = None,
    change: Change = None,
    over: Annotated[
        str | None, typer.Option(help="Search these settings only, such as lr,model.dropout.", metavar="LIST")
    ] = None,
    splits: Annotated[
        str | None,
        typer.Option(help="Try every setting on several splits, such as 0-2, and judge by the mean.", metavar="LIST"),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="End when the study has this many trials.", metavar="N", min=1)
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the study; it goes to data/searches/NAME.", metavar="NAME")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="Database URL, or journal:FILE, that processes share. Default: in the study.", metavar="URL"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Recipe to write. Default: recipe.toml in the study.", metavar="FILE")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Search settings for a store by validation, and write a recipe.

    Settings given here are fixed; all others are searched.
    Run the command again to continue the study; several processes can share it.
    """
    from gmn_train.runs.refusals import check_one_list, check_splits, check_trainable
    from gmn_train.search.budget import TimeBudget, parse_duration
    from gmn_train.settings.request import parse_numbers, read_request

    time = TimeBudget(parse_duration(budget))
    file, flags = request
    asked = read_request({**flags, "model.name": model}, file, change or [])
    split_list = parse_numbers(splits, "splits")
    check_one_list(asked.sources, "split", split_list)
    check_splits(asked.config.store, split_list)
    check_trainable(asked.config)
    if name is not None:
        from gmn_train.runs.naming import folder_of_name

        folder_of_name(name)

    from gmn_train.search.progress import SearchDisplay

    display = SearchDisplay.for_person(time, silent=quiet or json)
    display.say(f"loading {asked.config.store.name}")  # torch takes seconds to import
    from gmn_train.search.outcome import report_search
    from gmn_train.search.searching import search as run_search

    keys = tuple(key.strip() for key in (over or "").split(",") if key.strip())
    outcome = run_search(
        asked,
        time,
        display,
        command=command_line(),
        over=keys,
        splits=tuple(split_list),
        name=name,
        storage=storage,
        trials=trials,
        out=out,
    )
    if not quiet:
        report_search(outcome, str(asked.config.store), as_json=json)
