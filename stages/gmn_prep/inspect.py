"""Looks into a store: `gmn-prep inspect`, `verify`, `copy` and `repair`."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.console.output import print_json, size_text, two_columns
from gmn_pipeline.errors import ConfigError, StoreError
from gmn_pipeline.place import StorePlace, StoreUrl
from gmn_pipeline.store.checking.verify import verification_steps
from gmn_pipeline.store.checking.verify import verify_store as check_every_byte
from gmn_pipeline.store.files.manifest_file import read_manifest
from gmn_pipeline.store.files.places import stored_bytes
from gmn_pipeline.store.reading.reader import TokenStore
from gmn_prep.phases import Phases


def inspect_store(path: StorePlace, *, as_json: bool) -> None:
    """Manifest, sizes and token statistics per level."""
    store = TokenStore.open(path)
    levels = level_statistics(store)
    sizes = _group_sizes(store)
    if as_json:
        print_json({"manifest": store.manifest.as_attributes()["gmn"], "bytes": sizes, "levels": levels})
        return
    manifest, console = store.manifest, Console(markup=False)
    g, t, task = manifest.graph, manifest.tokens, manifest.task
    graphs = f"{g.graphs:,} graphs, " if g.many else ""
    rows = [
        ("dataset", " ".join(f"{k}={v}" for k, v in manifest.dataset.items())),
        ("graph", f"{graphs}{g.nodes:,} nodes, {g.edges:,} {'directed ' * g.directed}edges"),
        ("task", f"{task.item} {task.kind}, {task.classes} classes, {task.metric}" if task else "none"),
        ("features", _features(g.x, "node") + _features(g.edge_attr, ", edge")),
        ("splits", str(g.splits)),
        ("tokens", f"m={t.m} M={t.M} s={t.s}, {t.walk} walks, seed {t.seed}: {t.sequence_length} per node"),
        ("encodings", ", ".join(_settings_text(n, v) for n, v in manifest.encodings.items()) or "none"),
        ("orderings", ", ".join(manifest.orderings) or "none"),
        ("packing", f"{manifest.codec}, {manifest.blocks} blocks of up to {manifest.block_size:,} nodes"),
        ("size", ", ".join(f"{name} {size_text(count)}" for name, count in sizes.items())),
        ("fingerprint", manifest.fingerprint),
    ]
    console.print(two_columns(str(path), rows))
    table = Table(title="tokens by level", title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("level", "tokens", "mean nodes", "max nodes", "mean edges", "max edges"):
        table.add_column(column, justify="right")
    for row in levels:
        table.add_row(
            str(row["level"]), f"{row['tokens']:,}", f"{row['mean_nodes']:.1f}", f"{row['max_nodes']:,}",
            f"{row['mean_edges']:.1f}", f"{row['max_edges']:,}",
        )  # fmt: skip
    console.print()
    console.print(table)


def level_statistics(store: TokenStore) -> list[dict[str, Any]]:
    """Per level, highest first: tokens, mean and largest number of nodes and edges. Reads the pointers only."""
    settings = store.settings
    length = settings.sequence_length
    sums, most = np.zeros((2, length)), np.zeros((2, length), dtype=np.int64)
    for number in range(store.manifest.blocks):
        block = store.block(number)
        for i, name in enumerate(("node_ptr", "edge_ptr")):
            counts = np.diff(block[name].astype(np.int64)).reshape(-1, length)
            sums[i] += counts.sum(axis=0)
            most[i] = np.maximum(most[i], counts.max(axis=0, initial=0))
        store.forget(number)
    rows = []
    for level in range(settings.m, -1, -1):
        at = settings.levels == level
        tokens = int(at.sum()) * store.num_nodes
        rows.append(
            {
                "level": level,
                "tokens": tokens,
                "mean_nodes": float(sums[0, at].sum()) / max(tokens, 1),
                "max_nodes": int(most[0, at].max()),
                "mean_edges": float(sums[1, at].sum()) / max(tokens, 1),
                "max_edges": int(most[1, at].max()),
            }
        )
    return rows


def inspect_node(path: StorePlace, name: str | None, png: Path | None, *, as_json: bool) -> None:
    """One node's tokens, in text, as JSON, and as a picture. name: the node's number, or what the user calls it."""
    store = TokenStore.open(path)
    if name is None:
        raise ConfigError("--png draws one node's tokens; --node V is missing")
    node = _find_node(store, name)
    batch = store.view().gather([node])
    tokens = []
    for position, level in enumerate(store.settings.levels.tolist()):
        members = batch.token(0, position)
        assert batch.edges is not None
        assert batch.edge_ptr is not None
        pairs = members[batch.edges[batch.edge_ptr[position] : batch.edge_ptr[position + 1]]]
        repeat = position % store.settings.s if level else 0
        tokens.append({"level": level, "repeat": repeat, "nodes": members.tolist(), "edges": pairs.tolist()})
    if png is not None:
        from gmn_prep.draw import draw_tokens

        draw_tokens(node, tokens, png)
    if as_json:
        print_json({"node": node, "tokens": tokens})
        return
    table = Table(title=f"tokens of node {node}, in sequence order", title_justify="left", box=None, header_style="dim")
    table.add_column("level", justify="right")
    table.add_column("repeat", justify="right")
    table.add_column("edges", justify="right")
    table.add_column("nodes, by first visit", overflow="fold")
    for token in tokens:
        table.add_row(
            str(token["level"]),
            str(token["repeat"]),
            str(len(token["edges"])),
            " ".join(map(str, token["nodes"])),
        )
    console = Console(markup=False)
    console.print(table)
    if png is not None:
        console.print(f"drawn to {png}")


def _find_node(store: TokenStore, name: str) -> int:
    """The user's id comes first: ids may be numbers that are not the node's place."""
    ids = store.graph.node_ids
    node = -1 if ids is None else int(ids.rows([name])[0])
    if node < 0 and name.isascii() and name.isdigit():
        node = int(name)
    if not 0 <= node < store.num_nodes:
        called = "" if ids is None else f", or '{ids[0]}' to '{ids[-1]}' as you call them"
        raise ConfigError(f"node {name} does not exist; the store has nodes 0..{store.num_nodes - 1}{called}")
    return node


def verify_store(path: StorePlace, *, quiet: bool, as_json: bool) -> None:
    """Check the store and say so; a fault is raised as StoreCorruptError."""
    store = TokenStore.open(path, fresh=True)
    begun = time.perf_counter()
    with (
        Phases.for_person(silent=quiet or as_json) as phases,
        phases.phase("verify", verification_steps(store), "groups") as advance,
    ):
        check_every_byte(store, advance)
    size = sum(_group_sizes(store).values())
    facts = {"store": str(path), "ok": True, "bytes": size, "fingerprint": store.fingerprint}
    if as_json:
        print_json(facts)
    elif not quiet:
        took = time.perf_counter() - begun
        Console(markup=False).print(
            f"{path} is whole: {size_text(size)} checked in {took:.1f} s, fingerprint {store.fingerprint}"
        )


def copy_store(source: StorePlace, copied: StorePlace, *, quiet: bool, as_json: bool) -> None:
    """Copy a store and say what was copied; a fault is raised as StoreError."""
    from gmn_pipeline.store.writing.copy_store import copy_steps
    from gmn_pipeline.store.writing.copy_store import copy_store as copy_and_check

    begun = time.perf_counter()
    with Phases.for_person(silent=quiet or as_json) as phases:
        manifest = read_manifest(source)
        with phases.phase("copy", copy_steps(manifest), "groups") as advance:
            groups = copy_and_check(source, copied, advance)
    size = stored_bytes(copied)
    if as_json:
        facts = {"store": str(copied), "groups": groups, "bytes": size, "fingerprint": manifest.fingerprint}
        print_json(facts)
    elif not quiet:
        took = time.perf_counter() - begun
        Console(markup=False).print(
            f"{copied} is whole: {groups} groups copied, {size_text(size)} checked in {took:.1f} s, fingerprint "
            f"{manifest.fingerprint}",
            highlight=False,
        )


def repair_store(path: StorePlace, *, quiet: bool, as_json: bool) -> None:
    """Repair the store and say what was written again."""
    if isinstance(path, StoreUrl):
        raise StoreError(f"{path} is in an object store, where nothing is replaced; copy or tokenize to another place")
    from gmn_prep.repair import repair_store as write_again

    with Phases.for_person(silent=quiet or as_json) as phases:
        parts = write_again(path, phases, threads=usable_cores())
    if as_json:
        print_json({"store": str(path), "repaired": parts})
    elif not quiet:
        done = f"written again: {', '.join(parts)}" if parts else "nothing was damaged"
        Console(markup=False).print(f"{path} is whole; {done}", highlight=False)


def _group_sizes(store: TokenStore) -> dict[str, int]:
    return {name: stored_bytes(store.path, name) for name in ("graph", "encodings", "orderings", "tokens")}


def _features(facts: Any, what: str) -> str:
    if facts is None:
        return f"{what} none"
    kind = "categories" if facts.categories else "values"
    return f"{what} {facts.columns} {kind} ({facts.dtype})"


def _settings_text(name: str, settings: dict[str, Any]) -> str:
    return f"{name} {' '.join(f'{k}={v}' for k, v in settings.items())}"
