"""The command `gmn-prep`. Each command parses, calls one function, reports; heavy imports wait until one runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gmn_pipeline.console.cli import make_app, run_app, takes_config
from gmn_pipeline.place import as_place
from gmn_prep.tokenize_settings import TokenizeConfig

app = make_app("Turn graphs into token stores: tokenize once, train from the store many times.")

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors, and what is waited for.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate disk, memory and time; write nothing.")]
Recipe = Annotated[
    str | None,
    typer.Option(
        help="Recipe to start from, or `none`. Default: the dataset's.",
        metavar="NAME",
        show_default=False,
        rich_help_panel="Tokens",
    ),
]
StorePath = Annotated[
    Any,
    typer.Argument(metavar="STORE", help="A token store: data/arxiv.zarr, or s3://BUCKET/NAME.zarr.", parser=as_place),
]


@app.command()
@takes_config(TokenizeConfig)
def tokenize(
    request: tuple[Path | None, dict[str, Any]],
    *,
    recipe: Recipe = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Sample walks, build subgraph tokens and write them to a store. A store that already fits is reused."""
    from gmn_prep.phases import Phases
    from gmn_prep.report import report_outcome
    from gmn_prep.tokenize import tokenize as run
    from gmn_prep.tokenize_settings import read_request

    config = read_request(*request, recipe)
    with Phases.for_person(silent=quiet or json) as phases:
        outcome = run(config, phases, dry_run=dry_run)
    if not quiet:
        report_outcome(outcome, phases.seconds, as_json=json)


@app.command()
@takes_config(TokenizeConfig)
def plan(request: tuple[Path | None, dict[str, Any]], *, recipe: Recipe = None, quiet: Quiet = False) -> None:
    """Create a store without its tokens, for `gmn-prep part` to fill: manifest, graph, encodings and orderings."""
    from gmn_prep.phases import Phases
    from gmn_prep.tokenize import tokenize as run
    from gmn_prep.tokenize_settings import read_request

    config = read_request(*request, recipe)
    with Phases.for_person(silent=quiet) as phases:
        outcome = run(config, phases, only_plan=True)
    if not quiet:
        print(f"{outcome.path}: {outcome.manifest.blocks} parts, 0 to {outcome.manifest.blocks - 1}")


@app.command()
def part(
    store: StorePath,
    number: Annotated[int, typer.Argument(metavar="I", help="Which part, from 0.")],
    *,
    of: Annotated[int | None, typer.Option(metavar="N", help="Number of parts. Default: one per block.")] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Threads. Default: all cores.")] = None,
    quiet: Quiet = False,
) -> None:
    """Tokenize one part of a planned store. Safe to repeat, to run in parallel, or to restart after a kill."""
    from gmn_prep.parts.token_parts import write_part
    from gmn_prep.phases import Phases

    with Phases.for_person(silent=quiet) as phases:
        outcome = write_part(store, number, of, phases, threads=threads)
    if not quiet:
        print(f"{store}: part {number}, {outcome.written} of {outcome.blocks} blocks written")


@app.command()
def finish(store: StorePath, *, quiet: Quiet = False) -> None:
    """Complete a store once every part is written."""
    from gmn_prep.parts.token_parts import finish as complete

    manifest = complete(store)
    if not quiet:
        print(f"{store} is complete (fingerprint {manifest.fingerprint})")


@app.command()
def datasets(*, json: Json = False) -> None:
    """List the datasets that can be tokenized by name."""
    from gmn_prep.report import report_datasets

    report_datasets(as_json=json)


@app.command()
def inspect(
    store: StorePath,
    *,
    node: Annotated[
        str | None, typer.Option(metavar="NODE", help="Show the tokens of this node, by its number or your id.")
    ] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw that node's tokens into this file.")] = None,
    json: Json = False,
) -> None:
    """Show what a store holds: manifest, sizes, token statistics per level, or one node's tokens."""
    from gmn_prep.inspect import inspect_node, inspect_store

    if node is None and png is None:
        inspect_store(store, as_json=json)
    else:
        inspect_node(store, node, png, as_json=json)


@app.command()
def verify(store: StorePath, *, quiet: Quiet = False, json: Json = False) -> None:
    """Check every byte of a store against its checksums, then check that its numbers are consistent."""
    from gmn_prep.inspect import verify_store

    verify_store(store, quiet=quiet, as_json=json)


@app.command()
def copy(
    source: Annotated[Any, typer.Argument(metavar="SRC", help="A finished store.", parser=as_place)],
    copied: Annotated[Any, typer.Argument(metavar="DST", help="Where the copy goes.", parser=as_place)],
    *,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Copy a store between any two places, byte for byte, and check the copy. Run it again to continue."""
    from gmn_prep.inspect import copy_store

    copy_store(source, copied, quiet=quiet, as_json=json)


@app.command()
def repair(store: StorePath, *, quiet: Quiet = False, json: Json = False) -> None:
    """Rewrite the missing and damaged parts of a store, then verify it."""
    from gmn_prep.inspect import repair_store

    repair_store(store, quiet=quiet, as_json=json)


def main() -> None:
    run_app(app)
