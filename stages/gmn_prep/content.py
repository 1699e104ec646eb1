"""Computes what a store holds besides the graph: encodings, orderings and tokens, on threads or on a Dask cluster."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from gmn_pipeline.graph import Graph
from gmn_pipeline.store.writing.writer import BlockArrays, StoreWriter
from gmn_prep.encodings import compute_encoding
from gmn_prep.orderings import compute_ordering
from gmn_prep.phases import Phases
from gmn_prep.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from distributed import Client

    from gmn_prep.tokens.sweep import SweepTokenizer


def write_encodings(
    writer: StoreWriter, graph: Graph, threads: int, phases: Phases, cluster: "Client | None"
) -> list[str]:
    """Write the encodings that are missing; returns what the user should know. Rows are computed on a cluster."""
    notices: list[str] = []
    for name, settings in writer.manifest.encodings.items():
        if writer.has_group(f"encodings/{name}") or (
            cluster and _map_encoding(writer, graph, name, threads, phases, cluster)
        ):
            continue
        with phases.phase(name.replace("_", " "), graph.num_nodes, "nodes") as advance:
            computed = compute_encoding(graph, name, settings, threads=threads, on_progress=_steps(advance))
        writer.write_group(f"encodings/{name}", computed.arrays)
        notices += computed.notices
        for notice in computed.notices:
            phases.say(f"note: {notice}")
    return notices


def _map_encoding(
    writer: StoreWriter, graph: Graph, name: str, threads: int, phases: Phases, cluster: "Client"
) -> bool:
    """Compute an encoding on the cluster, unless its rows cannot be computed apart."""
    from gmn_prep.parts import encoding_parts as parts
    from gmn_prep.parts.dask_map import gather_encoding, map_encoding

    place, manifest = writer.place, writer.manifest
    if not parts.can_be_cut(name):
        return False
    if isinstance(place, Path):
        chunks = parts.share_encoding(place, manifest, graph, name, threads)
        map_encoding(cluster, place, manifest.fingerprint, name, chunks, phases)
        arrays = parts.join_encoding(place, manifest, name, chunks)
    else:
        shared = parts.compute_shared(manifest, graph, name, threads)
        rows = gather_encoding(cluster, place, manifest.fingerprint, name, parts.cut_rows(graph, shared), phases)
        arrays = parts.join_parts(manifest, name, shared, rows)
    writer.write_group(f"encodings/{name}", arrays)
    return True


def write_orderings(writer: StoreWriter, graph: Graph, seed: int, threads: int, phases: Phases) -> None:
    """Write the orderings that are missing."""
    missing = [name for name in writer.manifest.orderings if not writer.has_group(f"orderings/{name}")]
    if not missing:
        return
    with phases.phase("orderings", len(missing), "orderings") as advance:
        for name in missing:
            ordering = compute_ordering(graph, name, seed=seed, threads=threads)
            writer.write_group(f"orderings/{name}", vars(ordering))  # asdict would copy the arrays
            advance(1)


def write_tokens(
    writer: StoreWriter, tokenizer: "Tokenizer | SweepTokenizer", threads: int, phases: Phases, cluster: "Client | None"
) -> None:
    """Write the blocks that are missing. A block is written while the next is computed."""
    missing = writer.missing_blocks()
    if not missing:
        return
    borders = writer.block_ptr
    sizes = {b: int(borders[b + 1] - borders[b]) for b in missing}
    if cluster is not None:
        from gmn_prep.parts.dask_map import map_tokens

        map_tokens(cluster, writer.place, writer.manifest.fingerprint, sizes, phases)
        return
    with (
        ThreadPoolExecutor(threads) as pool,
        ThreadPoolExecutor(1) as disk,
        phases.phase("writing", len(missing), "blocks") as wrote,
        phases.phase("walks", sum(sizes.values()), "nodes") as walked,
    ):

        def write(number: int, block: BlockArrays) -> None:
            writer.write_block(number, block)
            wrote(1)

        pending: Future[None] | None = None
        for number in missing:
            block = tokenizer.block(int(borders[number]), int(borders[number + 1]), pool, walked)
            if pending is not None:
                pending.result()
            pending = disk.submit(write, number, block)
        if pending is not None:
            pending.result()


def _steps(advance: Callable[[int], None]) -> Callable[[int, int], None]:
    """An `on_progress(done, total)` that moves a bar which counts steps."""
    last = 0

    def on_progress(done: int, _total: int) -> None:
        nonlocal last
        advance(done - last)
        last = done

    return on_progress
