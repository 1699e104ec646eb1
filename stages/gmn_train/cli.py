"""The command `gmn-train`. Each command parses, calls one function, reports; heavy imports wait until one runs."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from gmn_pipeline.console.cli import make_app, run_app, takes_config
from gmn_train.cli_many import search, table
from gmn_train.cli_options import Change, Json, ModelName, Quiet, RunPath, Store
from gmn_train.ranks.environment import find_place, is_started
from gmn_train.settings.run_settings import TrainConfig

app = make_app("Train Graph Mamba Networks from token stores.")


@app.command()
@takes_config(TrainConfig)
def run(
    request: tuple[Path | None, dict[str, Any]],
    *,
    model: ModelName = None,
    change: Change = None,
    seeds: Annotated[str | None, typer.Option(help="Several seeds, such as 0,1,2,3.", metavar="LIST")] = None,
    splits: Annotated[str | None, typer.Option(help="Several splits, such as 0-9.", metavar="LIST")] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the run; it goes to data/runs/NAME.", metavar="NAME")
    ] = None,
    run_dir: Annotated[
        Path | None, typer.Option(help="Folder of the run. Default: data/runs/...", metavar="PATH")
    ] = None,
    with_control: Annotated[
        bool,
        typer.Option(
            "--with-control",
            help="Also train message passing alone, once for equal epochs and once for equal seconds.",
        ),
    ] = False,
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
    place = find_place()
    if is_started():
        flags = {**flags, "procs": place.size}
    flags = {**flags, "model.name": model}
    asked = read_request(flags, file, change or [])
    config = asked.config
    seed_list, split_list = parse_numbers(seeds, "seeds"), parse_numbers(splits, "splits")

    from gmn_train.runs.control import control_of
    from gmn_train.runs.refusals import (
        check_device,
        check_folder,
        check_one_list,
        check_splits,
        check_trainable,
        check_writable,
        named_dir,
    )
    from gmn_train.runs.watching.display import Display

    check_device(config.device)
    folder = named_dir(name, run_dir)
    if place.leads and not dry_run:  # the others write nothing
        check_writable(folder)
    check_one_list(asked.sources, "seed", seed_list)
    check_one_list(asked.sources, "split", split_list)
    check_splits(config.store, split_list)
    check_trainable(config)
    if with_control:
        control_of(config)
    # What follows from the data, such as the homophily of training labels, follows at each split anew.
    at_splits = [read_request({**flags, "split": split}, file, change or []).config for split in split_list]
    if not force and not dry_run:
        check_folder(folder, at_splits or [config], seed_list)
    if config.procs > 1 and not is_started() and not dry_run:
        _launch(config.procs)
    quiet = quiet or not place.leads

    with Display.for_person(silent=quiet or json) as display:
        display.say(f"loading {config.store.name} and model {config.model.name}")  # torch takes seconds to import
        if asked.measured:
            display.say(asked.measured)
        from gmn_train.runs.start import plan_run, start_runs
        from gmn_train.runs.watching.outcome import report_plan, report_runs

        if dry_run:
            count = max(len(seed_list), 1) * max(len(split_list), 1)
            plan = plan_run(config, display, name=name, run_dir=run_dir)
            if not quiet:
                report_plan(plan, count, as_json=json)
            return
        finished = start_runs(
            config,
            display,
            seeds=seed_list,
            at_splits=at_splits,
            name=name,
            run_dir=run_dir,
            force=force,
            with_control=with_control,
        )
    if not quiet:
        report_runs(finished, as_json=json)


@app.command()
def resume(
    run: RunPath,
    *,
    epochs: Annotated[int | None, typer.Option(metavar="N", help="Train longer, to this many epochs in all.")] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Threads. Default: the run's.")] = None,
    procs: Annotated[int | None, typer.Option(metavar="N", help="Processes. Default: the run's.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Continue an interrupted run from its last checkpoint, or train a finished one longer."""
    from gmn_train.runs.folder import RunFolder
    from gmn_train.runs.naming import find_run
    from gmn_train.runs.refusals import check_longer, check_own_store, check_shared, check_threads
    from gmn_train.runs.watching.display import Display

    path = find_run(run)
    config = RunFolder(path).config()
    check_threads(threads, procs)
    check_longer(path, config, epochs)
    check_own_store(config)
    place, procs = find_place(), procs or config.procs
    if is_started():
        procs = place.size
    check_shared(path, config, procs)
    if procs > 1 and not is_started():
        _launch(procs)
    quiet = quiet or not place.leads

    with Display.for_person(silent=quiet or json) as display:
        display.say(f"loading {path}")
        from gmn_train.runs.start import resume_run
        from gmn_train.runs.watching.outcome import report_runs

        finished = resume_run(path, display, threads=threads, epochs=epochs, procs=procs)
    if not quiet:
        report_runs([finished], as_json=json)


def _launch(procs: int) -> None:
    """Run this very command as several processes, and end with it."""
    from gmn_train.ranks.launch import launch_processes

    raise typer.Exit(launch_processes(procs))


def _find_and_tell(run: Path, store: Any, *, silent: bool, embeddings: bool = False) -> Path:
    """The folder of a run that can be used on a store. Says that it is being loaded: torch takes seconds to import."""
    from gmn_pipeline.console.streams import tell
    from gmn_train.runs.naming import find_run
    from gmn_train.runs.refusals import check_use

    path = find_run(run)
    check_use(path, store, embeddings=embeddings)
    if not silent:
        tell(f"loading {path}")
    return path


@app.command()
def evaluate(run: RunPath, *, store: Store = None, json: Json = False) -> None:
    """Print the metric on train, val and test at the run's best epoch."""
    from rich.console import Console

    from gmn_pipeline.console.output import print_json, two_columns

    path = _find_and_tell(run, store, silent=json)
    from gmn_train.runs.predicting.export import evaluate_run

    scores = evaluate_run(path, store)
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
    from gmn_pipeline.console.streams import tell
    from gmn_pipeline.disk.writable import check_output
    from gmn_train.runs.naming import check_ending

    check_ending(out)
    check_output(out)
    path = _find_and_tell(run, store, silent=json, embeddings=embeddings)
    named = None
    if pairs is not None:
        from gmn_train.runs.refusals import read_pairs_for

        named = read_pairs_for(path, store, pairs)
    from gmn_train.runs.predicting.export import export_predictions

    written = export_predictions(path, store, out, embeddings=embeddings, pairs=named)
    if json:
        print_json(written)
    else:
        from gmn_train.runs.predicting.prediction_table import few_columns

        for note in written["notes"]:
            tell(f"note: {note}")
        print(f"{written['file']}: {written['items']:,} items, {', '.join(few_columns(written['columns']))}")


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
        from gmn_train.runs.watching.overview import metrics_csv

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
    from gmn_train.runs.watching.overview import print_runs

    print_runs(folder, as_json=json)


app.command()(table)
app.command()(search)


@app.command()
def models() -> None:
    """List the models that --model takes."""
    from gmn_train.settings.listing import print_models

    print_models()


@app.command()
@takes_config(TrainConfig, partly=True)
def settings(
    request: tuple[Path | None, dict[str, Any]],
    *,
    model: ModelName = None,
    change: Change = None,
    json: Json = False,
) -> None:
    """List every setting with its default. With --store: the values of a run, and where each comes from."""
    from gmn_train.settings.listing import print_settings, print_values
    from gmn_train.settings.request import read_values

    file, flags = request
    if file is None and not flags and model is None and not change:
        print_settings(as_json=json)
    else:
        print_values(read_values({**flags, "model.name": model}, file, change or []), as_json=json)


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
