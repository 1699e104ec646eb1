"""The story of stage one: a graph in, a token store out.

What exists is answered before anything heavy is imported; the steps themselves are imported where the story needs them.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmn_pipeline.store.manifest import Manifest
from gmn_prep.datasets import load_dataset
from gmn_prep.phases import Progress
from gmn_prep.plan import Plan, find_store, is_exactly
from gmn_prep.tokenize_settings import TokenizeConfig

if TYPE_CHECKING:
    from gmn_pipeline.graph import Graph
    from gmn_pipeline.store.writer import StoreWriter, TokenBlock
    from gmn_prep.estimate import Estimate
    from gmn_prep.tokens.tokenizer import Tokenizer


@dataclass(frozen=True)
class Outcome:
    """What `tokenize` did."""

    path: Path
    manifest: Manifest
    made: bool
    """False where a store that serves the request was there already."""
    exact: bool = True
    """False where that store holds more than was asked."""
    notices: tuple[str, ...] = ()
    estimate: "Estimate | None" = None
    """Set on a dry run, which writes nothing."""


def tokenize(config: TokenizeConfig, progress: Progress, *, dry_run: bool = False) -> Outcome:
    """Make the store that `config` describes, or find that it exists."""
    plan = Plan.of(config)
    existing = find_store(plan)
    if existing is not None:
        path, manifest = existing
        return Outcome(path, manifest, made=False, exact=is_exactly(manifest, plan))
    return _make_store(plan, progress, dry_run=dry_run)


def _make_store(plan: Plan, progress: Progress, *, dry_run: bool) -> Outcome:
    from gmn_pipeline.store.writer import StoreWriter
    from gmn_prep.estimate import check_room, estimate_cost
    from gmn_prep.tokens.tokenizer import Tokenizer
    from gmn_prep.understood import describe_graph

    config = plan.config
    with progress.phase("load", 1, "dataset"):
        dataset = load_dataset(config.dataset, plan.options)
    for notice in dataset.notices:
        progress.say(f"note: {notice}")
    progress.say("\n".join(describe_graph(dataset.graph)))

    graph, notices = dataset.graph, list(dataset.notices)
    with progress.phase("prepare", 1, "graph"):
        manifest = _plan_store(plan, graph)
        tokenizer = Tokenizer.of(graph, plan.tokens)
        estimate = estimate_cost(tokenizer, manifest, plan.threads)
    if dry_run:
        return Outcome(plan.out, manifest, made=False, notices=tuple(notices), estimate=estimate)
    check_room(plan.out, estimate.disk_bytes, _bytes_in(plan.out), codec=config.codec)

    def on_wait() -> None:
        progress.say(f"another process is writing {plan.out}; waiting for it")

    with StoreWriter.open(plan.out, manifest, graph, force=config.force, wait=-1, on_wait=on_wait) as writer:
        if not writer.is_complete:
            notices += _write_encodings(writer, graph, plan, progress)
            _write_orderings(writer, graph, plan, progress)
            _write_tokens(writer, tokenizer, plan.threads, progress)
        return Outcome(plan.out, writer.finalise(), made=True, notices=tuple(notices))


def _plan_store(plan: Plan, graph: "Graph") -> Manifest:
    from gmn_pipeline.store.blocks import default_block_size
    from gmn_pipeline.store.writer import plan_manifest

    if plan.config.lap_pe:
        from gmn_prep.encodings.laplacian.encoding import check_eigenvectors

        check_eigenvectors(graph, plan.config.lap_pe)
    mode = plan.config.rwse_mode
    if plan.config.rwse and mode == "auto":
        from gmn_prep.encodings import choose_random_walk_mode

        mode = choose_random_walk_mode(graph, plan.config.rwse)
    return plan_manifest(
        graph,
        plan.tokens,
        block_size=plan.config.block_size or default_block_size(plan.tokens),
        dataset=plan.identity,
        encodings=plan.encodings(mode),
        orderings=plan.orderings(),
        codec=plan.config.codec,
    )


def _write_encodings(writer: "StoreWriter", graph: "Graph", plan: Plan, progress: Progress) -> list[str]:
    if not writer.manifest.encodings:
        return []
    from gmn_prep.encodings import laplacian_encoding, random_walk_encoding

    notices = []
    common: dict[str, Any] = {"seed": plan.config.seed, "threads": plan.threads}
    n = graph.num_nodes
    wanted = writer.manifest.encodings
    if "laplacian" in wanted and not writer.has_group("encodings/laplacian"):
        k = plan.config.lap_pe
        with progress.phase("laplacian", n, "nodes") as advance:
            found = laplacian_encoding(graph, k, on_progress=_steps(advance), **common)
        if found.short_graphs:
            notices.append(
                f"{found.short_graphs:,} graphs have fewer than {k + 1} nodes: they store the n-1 eigenvectors they "
                "have, then zeros (eigenvalues NaN)"
            )
            progress.say(f"note: {notices[-1]}")
        arrays = {"vectors": found.vectors, "values": found.values, "residuals": found.residuals}
        writer.write_group("encodings/laplacian", arrays)
    if "random_walk" in wanted and not writer.has_group("encodings/random_walk"):
        mode: Any = wanted["random_walk"]["mode"]
        with progress.phase(f"rwse {mode}", n, "nodes") as advance:
            walked = random_walk_encoding(graph, plan.config.rwse, mode=mode, on_progress=_steps(advance), **common)
        arrays = {"values": walked.values}
        if walked.stderr is not None:
            arrays["stderr"] = walked.stderr
        writer.write_group("encodings/random_walk", arrays)
    return notices


def _write_orderings(writer: "StoreWriter", graph: "Graph", plan: Plan, progress: Progress) -> None:
    from gmn_prep.orderings import compute_ordering

    missing = [name for name in writer.manifest.orderings if not writer.has_group(f"orderings/{name}")]
    if not missing:
        return
    with progress.phase("orderings", len(missing), "orderings") as advance:
        for name in missing:
            found = compute_ordering(graph, name, seed=plan.config.seed, threads=plan.threads)
            writer.write_group(f"orderings/{name}", asdict(found))
            advance(1)


def _write_tokens(writer: "StoreWriter", tokenizer: "Tokenizer", threads: int, progress: Progress) -> None:
    """Tokenize block after block while one thread writes the one before: at most three blocks are in memory."""
    missing = writer.missing_blocks()
    borders = writer.block_ptr
    total = sum(int(borders[b + 1] - borders[b]) for b in missing)
    with (
        ThreadPoolExecutor(threads) as pool,
        ThreadPoolExecutor(1) as disk,
        progress.phase("writing", len(missing), "blocks") as wrote,
        progress.phase("walks", total, "nodes") as walked,
    ):

        def write(number: int, block: "TokenBlock") -> None:
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


def _steps(advance: Any) -> Any:
    """An `on_progress(done, total)` that moves a bar which counts steps."""
    last = 0

    def on_progress(done: int, _total: int) -> None:
        nonlocal last
        advance(done - last)
        last = done

    return on_progress


def _bytes_in(path: Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) if path.exists() else 0
