"""The story of stage one: a graph in, a token store out.

An existing store is found before anything heavy is imported. Each step is imported where the story needs it.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmn_pipeline.errors import StoreCorruptError
from gmn_pipeline.store.manifest import Manifest, Scalar
from gmn_prep.datasets import load_dataset
from gmn_prep.phases import Phases
from gmn_prep.plan import Plan, dataset_options, find_store, is_exactly
from gmn_prep.tokenize_settings import TokenizeConfig

if TYPE_CHECKING:
    from gmn_pipeline.graph import Graph
    from gmn_pipeline.store.writer import BlockArrays, StoreWriter
    from gmn_prep.datasets import LoadedDataset
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
    repaired: tuple[str, ...] = ()
    """Parts of that store that were damaged and written again."""
    notices: tuple[str, ...] = ()
    estimate: "Estimate | None" = None
    """Set on a dry run, which writes nothing."""


def tokenize(
    config: TokenizeConfig, phases: Phases, *, dry_run: bool = False, only_plan: bool = False, data: Any = None
) -> Outcome:
    """Make the store that `config` describes, or use an existing one.

    only_plan: write everything but the tokens, which `parts` writes then. data: a graph in memory, as `load_object`
    takes it, instead of the dataset that `config` names.
    """
    plan, loaded = (Plan.of(config), None) if data is None else _plan_object(config, data)
    existing = find_store(plan)
    if existing is not None:
        path, manifest = existing
        repaired = () if dry_run else _repair_if_damaged(path, plan, loaded, phases)
        return Outcome(path, manifest, made=False, exact=is_exactly(manifest, plan), repaired=repaired)
    return _make_store(plan, loaded, phases, dry_run=dry_run, only_plan=only_plan)


def _plan_object(config: TokenizeConfig, data: Any) -> "tuple[Plan, LoadedDataset]":
    """The plan of a graph in memory: its content is its identity."""
    from gmn_pipeline.store.manifest import graph_fingerprint
    from gmn_prep.datasets.user.user_object import load_object

    loaded = load_object(data, dataset_options(config), config.dataset)
    identity: dict[str, Scalar] = {"dataset": loaded.name, "content": graph_fingerprint(loaded.graph)}
    return Plan.of(config, identity), loaded


def _repair_if_damaged(path: Path, plan: Plan, loaded: "LoadedDataset | None", phases: Phases) -> tuple[str, ...]:
    """Look at every file's size and every group's digest, which takes milliseconds; write again what is damaged."""
    from gmn_pipeline.store.quick_check import quick_check

    try:
        quick_check(path)
    except StoreCorruptError as error:
        from gmn_prep.repair import repair_store

        phases.say(f"note: the store is damaged; repairing it ({error})")
        graph = (loaded or load_dataset(plan.config.dataset, plan.options)).graph
        return tuple(repair_store(path, phases, threads=plan.threads, graph=graph))
    return ()


def _make_store(
    plan: Plan, loaded: "LoadedDataset | None", phases: Phases, *, dry_run: bool, only_plan: bool
) -> Outcome:
    from gmn_pipeline.console.compile_notice import tell_compilation

    with tell_compilation(phases.say):
        return _load_and_write(plan, loaded, phases, dry_run=dry_run, only_plan=only_plan)


def _load_and_write(
    plan: Plan, loaded: "LoadedDataset | None", phases: Phases, *, dry_run: bool, only_plan: bool
) -> Outcome:
    from gmn_pipeline.store.writer import StoreWriter
    from gmn_prep.estimate import check_room, estimate_cost
    from gmn_prep.tokens.tokenizer import Tokenizer
    from gmn_prep.understood import describe_graph

    config = plan.config
    with phases.phase("load", 1, "dataset"):
        dataset = loaded or load_dataset(config.dataset, plan.options)
    for notice in dataset.notices:
        phases.say(f"note: {notice}")
    phases.say("\n".join(describe_graph(dataset.graph)))

    graph, notices = dataset.graph, list(dataset.notices)
    with phases.phase("prepare", 1, "graph"):
        manifest = _plan_store(plan, graph)
        tokenizer = Tokenizer.of(graph, plan.tokens)
        estimate = estimate_cost(tokenizer, manifest, plan.threads)
    if dry_run:
        return Outcome(plan.out, manifest, made=False, notices=tuple(notices), estimate=estimate)
    check_room(plan.out, estimate.disk_bytes, 0 if config.force else _bytes_in(plan.out), codec=config.codec)

    def on_wait() -> None:
        phases.say(f"another process is writing {plan.out}; waiting for it")

    with StoreWriter.open(plan.out, manifest, graph, force=config.force, wait=-1, on_wait=on_wait) as writer:
        if not writer.is_complete:
            notices += _write_encodings(writer, graph, plan, phases)
            _write_orderings(writer, graph, plan, phases)
            if only_plan:
                return Outcome(plan.out, writer.manifest, made=True, notices=tuple(notices))
            _write_tokens(writer, tokenizer, plan.threads, phases)
        return Outcome(plan.out, writer.finalise(), made=True, notices=tuple(notices))


def _plan_store(plan: Plan, graph: "Graph") -> Manifest:
    from gmn_pipeline.store.blocks import default_block_size
    from gmn_pipeline.store.writing import plan_manifest
    from gmn_prep.encodings import settle_encodings

    return plan_manifest(
        graph,
        plan.tokens,
        block_size=plan.config.block_size or default_block_size(plan.tokens),
        dataset=plan.identity,
        encodings=settle_encodings(graph, plan.encodings, plan.config.seed),
        orderings=plan.orderings,
        codec=plan.config.codec,
    )


def _write_encodings(writer: "StoreWriter", graph: "Graph", plan: Plan, phases: Phases) -> list[str]:
    from gmn_prep.encodings import compute_encoding

    notices: list[str] = []
    for name, settings in writer.manifest.encodings.items():
        if writer.has_group(f"encodings/{name}"):
            continue
        with phases.phase(name.replace("_", " "), graph.num_nodes, "nodes") as advance:
            computed = compute_encoding(graph, name, settings, threads=plan.threads, on_progress=_steps(advance))
        writer.write_group(f"encodings/{name}", computed.arrays)
        notices += computed.notices
        for notice in computed.notices:
            phases.say(f"note: {notice}")
    return notices


def _write_orderings(writer: "StoreWriter", graph: "Graph", plan: Plan, phases: Phases) -> None:
    from gmn_prep.orderings import compute_ordering

    missing = [name for name in writer.manifest.orderings if not writer.has_group(f"orderings/{name}")]
    if not missing:
        return
    with phases.phase("orderings", len(missing), "orderings") as advance:
        for name in missing:
            ordering = compute_ordering(graph, name, seed=plan.config.seed, threads=plan.threads)
            writer.write_group(f"orderings/{name}", asdict(ordering))
            advance(1)


def _write_tokens(writer: "StoreWriter", tokenizer: "Tokenizer", threads: int, phases: Phases) -> None:
    """Tokenize block after block while one thread writes the one before: at most three blocks are in memory."""
    missing = writer.missing_blocks()
    borders = writer.block_ptr
    total = sum(int(borders[b + 1] - borders[b]) for b in missing)
    with (
        ThreadPoolExecutor(threads) as pool,
        ThreadPoolExecutor(1) as disk,
        phases.phase("writing", len(missing), "blocks") as wrote,
        phases.phase("walks", total, "nodes") as walked,
    ):

        def write(number: int, block: "BlockArrays") -> None:
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
