"""Plans the store that a request describes, before any work is done."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.errors import ConfigError, StoreClashError, StoreError
from gmn_pipeline.place import StorePlace, StoreUrl, make_way
from gmn_pipeline.store.format.manifest import Manifest, Scalar
from gmn_pipeline.store.format.naming import default_store
from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_prep.datasets import DatasetOptions, dataset_identity, load_dataset, store_name
from gmn_prep.encodings import asked_encodings
from gmn_prep.orderings import ORDERINGS
from gmn_prep.tokenize_settings import TokenizeConfig, default_data_root, table_options


@dataclass(frozen=True)
class Plan:
    """What was asked for, known without loading the graph."""

    config: TokenizeConfig
    tokens: TokenSettings
    options: DatasetOptions
    identity: dict[str, Scalar]
    """What the graph's content depends on."""
    out: StorePlace
    threads: int
    encodings: dict[str, dict[str, Scalar]]
    """By name, the settings asked for; `auto` is settled when the graph is known."""
    orderings: dict[str, dict[str, Scalar]]

    @classmethod
    def of(cls, config: TokenizeConfig, identity: dict[str, Scalar] | None = None) -> "Plan":
        """Check the settings and find out what they name. Raises ConfigError, DatasetError.

        identity: of a graph in memory, what its content is.
        """
        encodings = asked_encodings(config)
        names = sorted({ORDERINGS.find(name).name for name in config.ordering})
        orderings: dict[str, dict[str, Scalar]] = {name: {"seed": config.seed} for name in names}
        tokens = TokenSettings(config.m, config.M, config.s, config.walk, config.seed)
        options = dataset_options(config)
        if identity is None:
            identity = dataset_identity(config.dataset, options)
        out = config.out or default_store(store_name(config.dataset, options))
        _check_place(out)
        threads = config.threads or usable_cores()
        return cls(config, tokens, options, identity, out, threads, encodings, orderings)


def dataset_options(config: TokenizeConfig) -> DatasetOptions:
    """What the settings say about the dataset."""
    return DatasetOptions(
        data_root=config.data_root or default_data_root(),
        nodes=config.nodes,
        graphs=config.graphs,
        seed=config.data_seed,
        directed=config.directed,
        task=config.task,
        metric=config.metric,
        classes=config.classes,
        **table_options(config),
    )


def _check_place(out: StorePlace) -> None:
    if isinstance(out, StoreUrl):
        return
    try:
        if not out.name:
            raise ConfigError("--out is not a name for a store; give one such as data/mine.zarr")
        out.with_name(f"{out.name}.old-00000000").exists()  # the longest name we may need
    except OSError as error:
        raise ConfigError(f"--out {str(out)[:40]}... cannot be used: {error.strerror}; choose another") from None


def find_store(plan: Plan, *, replaces: bool = True) -> tuple[StorePlace, Manifest] | None:
    """A finished store that already serves the plan: the one at its place, or any beside it if no place was named.

    replaces: whether the command can replace a store. Raises StoreClashError where the place is taken by other content,
    and DatasetError where the options ask for what the data does not have.
    """
    if plan.config.force:
        return None
    present = _complete_manifest(plan.out)
    if present is not None:
        if serves(present, plan):
            return plan.out, present
        if plan.config.out is None:
            beside = _search_beside(plan)
            if beside is not None:
                return beside
        check_options(plan, present)
        content = "; ".join([describe(present), *differences(plan, present)])
        raise StoreClashError(f"{plan.out} holds other content ({content}); {make_way(plan.out, replaces=replaces)}")
    return _search_beside(plan) if plan.config.out is None else None


def check_options(plan: Plan, present: Manifest) -> None:
    """Raise DatasetError where the data does not take the options in which the plan differs from a store.

    A mistyped `--label` is told as such, not as other content. The data is read for that, unless memory is bounded.
    """
    names = {*plan.identity, *present.dataset} - {"content", "seed"}
    if plan.config.memory is None and any(plan.identity.get(name) != present.dataset.get(name) for name in names):
        load_dataset(plan.config.dataset, plan.options)


def differences(plan: Plan, present: Manifest) -> list[str]:
    """In a few words each, what a plan asks of the same dataset that a store was not made with."""
    there, asked = present.dataset, plan.identity
    if there.get("dataset") != asked.get("dataset"):
        return []
    texts = ["its files have changed since"] if there.get("content") != asked.get("content") else []
    names = [name for name in {**there, **asked} if name != "content" and there.get(name) != asked.get(name)]
    return texts + [f"now asked: {name}={asked[name]}" if name in asked else f"now no {name}" for name in names]


def _search_beside(plan: Plan) -> tuple[Path, Manifest] | None:
    assert isinstance(plan.out, Path), "a URL was named"
    for path in sorted(plan.out.parent.glob("*.zarr")):
        try:
            manifest = _complete_manifest(path)
        except StoreError:
            continue  # someone else's Zarr group, or a newer store: not ours to judge here
        if manifest is not None and serves(manifest, plan):
            return path, manifest
    return None


def _complete_manifest(path: StorePlace) -> Manifest | None:
    from gmn_pipeline.store.files.manifest_file import manifest_at

    manifest = manifest_at(path)
    return manifest if manifest is not None and manifest.state == "complete" else None


def serves(manifest: Manifest, plan: Plan) -> bool:
    """Whether a store holds all that is asked: the same graph, tokens at least as many, every encoding and ordering."""
    return (
        manifest.dataset == plan.identity
        and manifest.tokens.covers(plan.tokens)
        and all(_encoding_serves(manifest, name, wants) for name, wants in plan.encodings.items())
        and all(manifest.orderings.get(name) == wants for name, wants in plan.orderings.items())
    )


def _encoding_serves(manifest: Manifest, name: str, wants: dict[str, Scalar]) -> bool:
    from gmn_pipeline.store.format.encodings import ENCODINGS

    has = manifest.encodings.get(name)
    return has is not None and ENCODINGS[name].serves(has, wants)


def is_exactly(manifest: Manifest, plan: Plan) -> bool:
    """Whether a serving store holds nothing more than was asked."""
    same = {name: value["k"] for name, value in manifest.encodings.items()}
    asked = {name: value["k"] for name, value in plan.encodings.items()}
    return manifest.tokens == plan.tokens and same == asked and manifest.orderings == plan.orderings


def describe(manifest: Manifest) -> str:
    """A store's content in a few words."""
    t = manifest.tokens
    parts: list[Any] = [" ".join(f"{k}={v}" for k, v in manifest.dataset.items() if k != "content")]
    parts.append(f"m={t.m} M={t.M} s={t.s} walk={t.walk} seed={t.seed}")
    parts += [f"{name} k={value['k']}" for name, value in manifest.encodings.items()]
    parts.append(f"orderings {' '.join(manifest.orderings) or 'none'}")
    return ", ".join(parts)
