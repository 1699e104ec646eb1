"""The story of stage one: a graph in, a token store out.

An existing store is found before anything heavy is imported. Each step is imported where the story needs it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gmn_pipeline.disk.writable import why_not_writable
from gmn_pipeline.errors import ConfigError, StoreClashError, StoreCorruptError, StoreError
from gmn_pipeline.place import StorePlace, StoreUrl
from gmn_pipeline.store.format.manifest import Manifest, Scalar
from gmn_prep.datasets import load_dataset
from gmn_prep.phases import Phases
from gmn_prep.plan import Plan, dataset_options, find_store, is_exactly
from gmn_prep.tokenize_settings import TokenizeConfig

if TYPE_CHECKING:
    from distributed import Client

    from gmn_pipeline.graph import Graph
    from gmn_prep.datasets import LoadedDataset
    from gmn_prep.estimate import StoreCost


@dataclass(frozen=True)
class TokenizeOutcome:
    """What `tokenize` did."""

    path: StorePlace
    manifest: Manifest
    made: bool
    """False where a store that serves the request was there already."""
    exact: bool = True
    """False where that store holds more than was asked."""
    repaired: tuple[str, ...] = ()
    """Parts of that store that were damaged and written again."""
    notices: tuple[str, ...] = ()
    estimate: "StoreCost | None" = None
    """Set on a dry run, which writes nothing."""


def tokenize(
    config: TokenizeConfig, phases: Phases, *, dry_run: bool = False, only_plan: bool = False, data: Any = None
) -> TokenizeOutcome:
    """Make the store that `config` describes, or use an existing one.

    only_plan: write everything but the tokens, which `parts` writes then. data: a graph in memory, as `load_object`
    takes it, instead of the dataset that `config` names.
    """
    plan, loaded = (Plan.of(config), None) if data is None else _plan_object(config, data)
    if only_plan and config.force:
        _refuse_to_replace(plan.out)
    existing = find_store(plan, replaces=not only_plan)
    if existing is not None:
        path, manifest = existing
        repaired = () if dry_run else _repair_if_damaged(path, plan, loaded, phases)
        return TokenizeOutcome(path, manifest, made=False, exact=is_exactly(manifest, plan), repaired=repaired)
    if not dry_run and isinstance(plan.out, Path) and (reason := why_not_writable(plan.out)) is not None:
        raise StoreError(f"cannot write {plan.out}: {reason}; choose another --out")  # before the data is read
    if config.dask is None or dry_run:
        return _make_store(plan, loaded, phases, dry_run=dry_run, only_plan=only_plan)
    from gmn_pipeline.store.writing.writer import refuse_busy
    from gmn_prep.parts.dask_cluster import open_cluster

    refuse_busy(plan.out)  # before anyone's cluster is asked
    with open_cluster(config.dask, plan.threads, phases.insist) as cluster:
        return _make_store(plan, loaded, phases, dry_run=False, only_plan=only_plan, cluster=cluster)


def _refuse_to_replace(out: StorePlace) -> None:
    """Parts are told the store's own name, and would find the old store there."""
    from gmn_pipeline.store.files.places import has_root

    if has_root(out):
        raise StoreClashError(
            f"{out} holds a store, which plan --force cannot replace; leave out --force to keep it, choose another "
            "--out, or remove it"
        )


def _plan_object(config: TokenizeConfig, data: Any) -> "tuple[Plan, LoadedDataset]":
    """The plan of a graph in memory: its content is its identity."""
    from gmn_pipeline.store.format.manifest import graph_fingerprint
    from gmn_prep.datasets.user.user_object import load_object

    if config.memory is not None:
        raise ConfigError("memory goes with a table of edges on disk, not with a graph in memory; leave it out")
    loaded = load_object(data, dataset_options(config), config.dataset)
    identity: dict[str, Scalar] = {"dataset": loaded.name, "content": graph_fingerprint(loaded.graph)}
    return Plan.of(config, identity), loaded


def _repair_if_damaged(path: StorePlace, plan: Plan, loaded: "LoadedDataset | None", phases: Phases) -> tuple[str, ...]:
    """Look at every file's size and every group's digest, which takes milliseconds; write again what is damaged."""
    if isinstance(path, StoreUrl):
        return ()  # its objects are never changed; gmn-prep verify reads them all
    from gmn_pipeline.store.checking.quick_check import quick_check
    from gmn_pipeline.store.writing.writer import clear_leftovers

    clear_leftovers(path)
    try:
        quick_check(path)
    except StoreCorruptError as error:
        from gmn_prep.repair import repair_store

        phases.say(f"note: the store is damaged; repairing it ({error})")
        graph = (loaded or load_dataset(plan.config.dataset, plan.options)).graph
        return tuple(repair_store(path, phases, threads=plan.threads, graph=graph))
    return ()


def _make_store(
    plan: Plan,
    loaded: "LoadedDataset | None",
    phases: Phases,
    *,
    dry_run: bool,
    only_plan: bool,
    cluster: "Client | None" = None,
) -> TokenizeOutcome:
    phases.say(f"loading {plan.config.dataset}")  # the imports alone take seconds
    from gmn_pipeline.console.compile_notice import tell_compilation

    with tell_compilation(phases.say):
        if plan.config.memory is None:
            return _load_and_write(plan, loaded, phases, dry_run=dry_run, only_plan=only_plan, cluster=cluster)
        from gmn_pipeline.store.files.places import stored_bytes
        from gmn_prep.estimate import check_room
        from gmn_prep.large import estimate_large, on_disk

        if isinstance(plan.out, StoreUrl):
            raise ConfigError(f"--memory writes into a folder, and {plan.out} is a URL; use gmn-prep copy afterwards")
        manifest, estimate = estimate_large(plan, dry_run=dry_run)
        if dry_run:
            return TokenizeOutcome(plan.out, manifest, made=False, estimate=estimate)
        written = 0 if plan.config.force else stored_bytes(plan.out)
        check_room(plan.out, estimate.disk_bytes + estimate.beside_bytes, written)
        with on_disk(plan) as plan:
            return _load_and_write(plan, loaded, phases, dry_run=dry_run, only_plan=only_plan, cluster=cluster)


def _load_and_write(
    plan: Plan,
    loaded: "LoadedDataset | None",
    phases: Phases,
    *,
    dry_run: bool,
    only_plan: bool,
    cluster: "Client | None",
) -> TokenizeOutcome:
    from gmn_pipeline.store.files.places import stored_bytes
    from gmn_pipeline.store.reading.reader import TokenStore
    from gmn_pipeline.store.writing.writer import StoreWriter
    from gmn_prep.content import write_encodings, write_orderings, write_tokens
    from gmn_prep.estimate import check_room, estimate_cost
    from gmn_prep.large import bounded_tokenizer, disk_tokenizer
    from gmn_prep.parts.shared_arrays import remove_parts
    from gmn_prep.parts.token_parts import share_pairs
    from gmn_prep.parts.versions import share_versions
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
        large = plan.options.scratch is not None
        tokenizer = disk_tokenizer(graph, plan) if large else Tokenizer.of(graph, plan.tokens)
        # A sample of tokens reads a mapped graph at random; what a large one needs was reckoned before.
        estimate = None if large else estimate_cost(tokenizer, manifest, plan.threads)
    if dry_run:
        return TokenizeOutcome(plan.out, manifest, made=False, notices=tuple(notices), estimate=estimate)
    if estimate is not None and isinstance(plan.out, Path):
        written = 0 if config.force else stored_bytes(plan.out)
        check_room(plan.out, estimate.disk_bytes, written, codec=config.codec)

    def on_wait() -> None:
        phases.insist(f"another process is writing {plan.out}; waiting for it")

    wait = -1 if cluster is None else 0  # nobody's cluster is kept waiting
    with StoreWriter.open(plan.out, manifest, graph, force=config.force, wait=wait, on_wait=on_wait) as writer:
        place = writer.place
        if not writer.is_complete:
            if only_plan or cluster is not None:
                share_pairs(place, writer.manifest, tokenizer.pairs)
            if only_plan:
                share_versions(place, writer.manifest)
            if large:
                graph = TokenStore.open(place, unfinished=True).graph
            notices += write_encodings(writer, graph, plan.threads, phases, cluster)
            write_orderings(writer, graph, plan.config.seed, plan.threads, phases)
            if only_plan:
                return TokenizeOutcome(plan.out, writer.manifest, made=True, notices=tuple(notices))
            walker = bounded_tokenizer(tokenizer, graph, plan) if large else tokenizer
            write_tokens(writer, walker, plan.threads, phases, cluster)
        outcome = TokenizeOutcome(plan.out, writer.finalise(), made=True, notices=tuple(notices))
        remove_parts(place)
        return outcome


def _plan_store(plan: Plan, graph: "Graph") -> Manifest:
    from gmn_pipeline.store.format.blocks import default_block_size
    from gmn_pipeline.store.writing.verbs import plan_manifest
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
