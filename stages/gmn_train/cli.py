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
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
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
    run_dir: Annotated[
        Path | None, typer.Option(help="Folder of the run. Default: data/runs/...", metavar="PATH")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Start from the beginning, even if the run exists.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a model from a store. A finished run is reported; an interrupted one continues."""
    from gmn_train.settings.request import parse_numbers, read_request

    file, flags = request
    config = read_request({**flags, "model.name": model}, file, change or []).config
    several = {"seeds": parse_numbers(seeds, "seeds"), "splits": parse_numbers(splits, "splits")}

    from gmn_train.runs.display import Display
    from gmn_train.runs.outcome import report_runs
    from gmn_train.runs.start import start_runs

    with Display.for_person(silent=quiet or json) as display:
        finished = start_runs(config, display, **several, run_dir=run_dir, force=force)
    if not quiet:
        report_runs(finished, as_json=json)


@app.command()
def resume(
    run: RunPath,
    *,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Threads. Default: the run's.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Continue an interrupted run from its last checkpoint."""
    from gmn_train.runs.display import Display
    from gmn_train.runs.outcome import report_runs
    from gmn_train.runs.start import resume_run

    with Display.for_person(silent=quiet or json) as display:
        finished = resume_run(run, display, threads=threads)
    if not quiet:
        report_runs([finished], as_json=json)


@app.command()
def evaluate(run: RunPath, *, store: Store = None, json: Json = False) -> None:
    """Print the metric on train, val and test at the run's best epoch."""
    from rich.console import Console

    from gmn_pipeline.console.output import print_json, two_columns
    from gmn_train.runs.export import evaluate_run

    scores = evaluate_run(run, store)
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

    written = export_predictions(run, store, out, embeddings=embeddings, pairs=pairs)
    if json:
        print_json(written)
    else:
        print(f"{written['file']}: {written['items']:,} items, {', '.join(written['columns'])}")


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="One run, or several to compare.")],
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write. Default: report.html in the run's folder.")
    ] = None,
) -> None:
    """Write one self-contained HTML page about a run, or about several side by side."""
    from gmn_train.report import write_report

    print(f"report written to {write_report(runs, out)}")


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
