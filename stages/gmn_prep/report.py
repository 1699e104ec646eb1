"""What the commands print when they are done."""

from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console

from gmn_pipeline.console.machine import peak_memory
from gmn_pipeline.console.output import print_json, size_text, two_columns
from gmn_pipeline.store.files.places import stored_bytes
from gmn_prep.datasets import DATASETS

if TYPE_CHECKING:
    from gmn_prep.tokenize import TokenizeOutcome


def minutes_text(seconds: float) -> str:
    return "less than a minute" if seconds < 60 else f"about {seconds / 60:.1f} minutes"


def report_outcome(outcome: "TokenizeOutcome", seconds: dict[str, float], *, as_json: bool) -> None:
    """The closing table of `gmn-prep tokenize`."""
    facts = _outcome_facts(outcome, seconds)
    if as_json:
        print_json(facts)
        return
    console = Console(markup=False)  # a path may hold [square brackets]
    next_step = f"gmn-train run --store {outcome.path}"
    if outcome.estimate is not None:
        on_top = ", encodings on top" if outcome.manifest.encodings else ""
        rows = [
            ("store", f"{outcome.path} (not written: dry run)"),
            ("nodes", f"{outcome.manifest.graph.nodes:,}"),
            ("tokens", f"{facts['tokens']:,}"),
            ("disk", f"about {size_text(outcome.estimate.disk_bytes)}"),
            *(
                (("while made", f"about {size_text(beside)} more"),)
                if (beside := outcome.estimate.beside_bytes)
                else ()
            ),
            ("memory", f"about {size_text(outcome.estimate.memory_bytes)}"),
            ("time", f"{minutes_text(outcome.estimate.seconds)} for tokens{on_top}"),
        ]
        console.print(two_columns("estimate", rows))
        return
    if not outcome.made:
        more = "" if outcome.exact else "; it holds more than was asked, and serves it by slicing"
        console.print(f"{outcome.path} already exists{more} (fingerprint {outcome.manifest.fingerprint})")
        if outcome.repaired:
            console.print(f"it was damaged; written again: {', '.join(outcome.repaired)}")
        console.print(f"next: {next_step}", style="bold")
        return
    phases = ", ".join(f"{name} {took:.1f} s" for name, took in seconds.items() if took >= 0.05)
    t = outcome.manifest.tokens
    rows = [
        ("store", str(outcome.path)),
        ("fingerprint", outcome.manifest.fingerprint),
        ("tokens", f"{facts['tokens']:,} of {outcome.manifest.graph.nodes:,} nodes, m={t.m} M={t.M} s={t.s}"),
        (
            "size",
            f"{size_text(facts['bytes'])}, {facts['token_nodes']:,} nodes and {facts['token_edges']:,} edges in tokens",
        ),
        ("seconds", phases),
        ("memory", f"{size_text(facts['peak_memory_bytes'])} at the peak"),
    ]
    if facts["tokens_per_second"]:
        rows.append(("tokens/s", f"{facts['tokens_per_second']:,.0f}"))
    rows.append(("next", next_step))
    console.print(two_columns("token store", rows))


def _outcome_facts(outcome: "TokenizeOutcome", seconds: dict[str, float]) -> dict[str, Any]:
    manifest = outcome.manifest
    tokens = manifest.graph.nodes * manifest.tokens.sequence_length
    walking = seconds.get("walks", 0.0)
    facts = {
        "store": str(outcome.path),
        "made": outcome.made,
        "exact": outcome.exact,
        "repaired": list(outcome.repaired),
        "fingerprint": manifest.fingerprint,
        "nodes": manifest.graph.nodes,
        "tokens": tokens,
        "peak_memory_bytes": peak_memory(),
        "token_nodes": manifest.token_nodes,
        "token_edges": manifest.token_edges,
        "settings": manifest.tokens.as_dict(),
        "encodings": manifest.encodings,
        "orderings": list(manifest.orderings),
        "seconds": {name: round(took, 3) for name, took in seconds.items()},
        "tokens_per_second": round(tokens / walking) if outcome.made and walking else None,
        "notices": list(outcome.notices),
    }
    if outcome.estimate is not None:
        facts["estimate"] = vars(outcome.estimate)
    else:
        facts["bytes"] = stored_bytes(outcome.path)
    return facts


def report_datasets(*, as_json: bool) -> None:
    """The table of `gmn-prep datasets`."""
    names = ("name", "size", "task", "metric", "source")
    if as_json:
        print_json([{name: getattr(line, name) for name in names} for line in DATASETS.values()])
        return
    console = Console(highlight=False)
    for source, group in groupby(DATASETS.values(), key=lambda line: line.source.split(" (")[0]):
        console.print(f"[dim]{source}[/dim]")
        for line in group:
            option = next((f" (--{name})" for name in ("nodes", "graphs") if name in line.takes), "")
            size = line.size.split(", ")[0] + option
            console.print(f"[bold]{line.name:<16}[/bold]  {size:<24}  {line.task:<17}  {line.metric}")
        console.print()
    console.print("ROOT is --data-root, else $GMN_DATA_ROOT, else data/raw.")
    console.print("--task link predicts which nodes are linked, for any dataset with node labels.")
    console.print("Your own .npz, .pt, .csv or .parquet file is a dataset too: docs/datasets.md")
