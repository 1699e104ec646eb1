"""The command `gmn-train`. Each command parses, calls one function, reports; heavy imports wait until one runs."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from gmn_pipeline.console.cli import make_app, run_app, takes_config
from gmn_train.settings.run_settings import TrainConfig

app = make_app("Train Graph Mamba Networks from token stores.")

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run: its folder, or its name.")]
Store = Annotated[Path | None, typer.Option(metavar="PATH", help="Store to use instead. Default: the run's.")]


ModelName = Annotated[
    str | None,
    typer.Option("--model", help="Model to train; `gmn-train models` lists them. [default: gmn]", metavar="NAME"),
]
Change = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any setting, such as lr=0.01 or model.width=96; `gmn-train settings` lists them. May be repeated.",
        metavar="KEY=VALUE",
    ),
]


@app.command()
@takes_config(TrainConfig)
def run(
    request: tuple[Path | None, dict[str, Any]],
    *,
    model: ModelName = None,
    change: Change = None,
    seeds: Annotated[str | None, typer.Option(help="Several seeds, such as 0,1,2,3.", metavar="LIST")] = None,
    splits: Annotated[str | None, typer.Option(help="Several splits, such as 0-9.", metavar="LIST")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run; it goes to data/runs/NAME.")] = None,
    run_dir: Annotated[
        Path | None, typer.Option(help="Folder of the run. Default: data/runs/...", metavar="PATH")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Start from the beginning, even if the run exists.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the estimate of memory and time; write nothing.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a model from a store. A finished run is reported; an interrupted one continues."""
    from gmn_train.settings.request import parse_numbers, read_request

    file, flags = request
    config = read_request({**flags, "model.name": model}, file, change or []).config
    several = {"seeds": parse_numbers(seeds, "seeds"), "splits": parse_numbers(splits, "splits")}

    from gmn_train.runs.display import Display

    with Display.for_person(silent=quiet or json) as display:
        display.say(f"loading {config.store.name} and model {config.model.name}")  # torch takes seconds to import
        from gmn_train.runs.outcome import report_plan, report_runs
        from gmn_train.runs.start import plan_run, start_runs

        if dry_run:
            count = max(len(several["seeds"]), 1) * max(len(several["splits"]), 1)
            report_plan(plan_run(config, display, name=name, run_dir=run_dir), count, as_json=json)
            return
        finished = start_runs(config, display, **several, name=name, run_dir=run_dir, force=force)
    if not quiet:
        report_runs(finished, as_json=json)


@app.command()
def resume(
    run: RunPath,
    *,
    epochs: Annotated[int | None, typer.Option(metavar="N", help="Train longer, to this many epochs in all.")] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Threads. Default: the run's.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Continue an interrupted run from its last checkpoint, or train a finished one longer."""
    from gmn_train.runs.display import Display
    from gmn_train.runs.naming import find_run

    path = find_run(run)

    with Display.for_person(silent=quiet or json) as display:
        display.say(f"loading {path}")
        from gmn_train.runs.outcome import report_runs
        from gmn_train.runs.start import resume_run

        finished = resume_run(path, display, threads=threads, epochs=epochs)
    if not quiet:
        report_runs([finished], as_json=json)


@app.command()
def evaluate(run: RunPath, *, store: Store = None, json: Json = False) -> None:
    """Print the metric on train, val and test at the run's best epoch."""
    from rich.console import Console

    from gmn_pipeline.console.output import print_json, two_columns
    from gmn_train.runs.export import evaluate_run
    from gmn_train.runs.naming import find_run

    scores = evaluate_run(find_run(run), store)
    if json:
        print_json(scores)
    else:
        rows = [(part, f"{scores[part]:.4f} {scores['metric']}") for part in ("train", "val", "test")]
        Console().print(two_columns("", rows))


@app.command()
def predict(
    run: RunPath,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write: .parquet, .csv or .npz.")],
    store: Store = None,
    pairs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Table of pairs to score, columns src and dst (link tasks).")
    ] = None,
    embeddings: Annotated[bool, typer.Option("--embeddings", help="Add the items' embeddings.")] = False,
    json: Json = False,
) -> None:
    """Write predictions for every item of the run's store, or of new data. New data needs no labels."""
    from gmn_pipeline.console.output import print_json
    from gmn_train.runs.export import export_predictions
    from gmn_train.runs.naming import find_run

    written = export_predictions(find_run(run), store, out, embeddings=embeddings, pairs=pairs)
    if json:
        print_json(written)
    else:
        print(f"{written['file']}: {written['items']:,} items, {', '.join(written['columns'])}")


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="One run, or several to compare, by folder or name.")
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write. Default: report.html in the run's folder.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the metrics of every epoch to this table instead.")
    ] = None,
) -> None:
    """Write one self-contained HTML page about a run, or about several side by side."""
    from gmn_train.runs.naming import find_several, runs_in

    paths = [find_several(run) for run in runs]
    if csv is not None:
        from gmn_pipeline.disk.atomic_file import write_text
        from gmn_train.runs.overview import metrics_csv

        print(f"metrics written to {write_text(csv, metrics_csv([run for path in paths for run in runs_in(path)]))}")
        return
    from gmn_train.report import write_report

    print(f"report written to {write_report(paths, out)}")


@app.command("runs")
def list_runs(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to look.")] = Path("data/runs"),
    *,
    json: Json = False,
) -> None:
    """List the runs in a folder: name, store, model, metric, epochs and state."""
    from gmn_train.runs.overview import print_runs

    print_runs(folder, as_json=json)


@app.command()
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
    only_write: Annotated[bool, typer.Option("--only-write", help="Write finished runs; run nothing.")] = False,
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


@app.command()
def models() -> None:
    """List the models that --model takes."""
    from gmn_train.settings.listing import print_models

    print_models()


@app.command()
@takes_config(TrainConfig)
def settings(
    request: tuple[Path | None, dict[str, Any]],
    *,
    model: ModelName = None,
    change: Change = None,
    json: Json = False,
) -> None:
    """List every setting with its default. With --store: the values of a run, and where each comes from."""
    from gmn_train.settings.listing import print_request, print_settings
    from gmn_train.settings.request import read_request

    file, flags = request
    if file is None and not flags and model is None and not change:
        print_settings(as_json=json)
    else:
        print_request(read_request({**flags, "model.name": model}, file, change or []), as_json=json)


@app.command()
def doctor(*, json: Json = False) -> None:
    """Print what this machine has and what a run would use."""
    from gmn_train.machine.doctor import run_doctor

    run_doctor(as_json=json)


def main() -> None:
    # OpenMP threads that spin while they wait take the cores from our kernels' threads and from the loader: three times
    # the seconds per epoch on two busy cores. Must be set before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    run_app(app)
