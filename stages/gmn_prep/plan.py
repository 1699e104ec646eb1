"""From what the user asked to what the store will be, before any work is done."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gmn_pipeline.errors import ConfigError, StoreClashError, StoreError, nearest
from gmn_pipeline.store.manifest import Manifest, Scalar
from gmn_pipeline.store.token_settings import TokenSettings
from gmn_prep.datasets import DatasetOptions, dataset_identity, store_name
from gmn_prep.tokenize_settings import TokenizeConfig, available_threads, default_data_root, table_options

ORDERINGS = ("degree", "pagerank", "k-core", "eigenvector", "random")


@dataclass(frozen=True)
class Plan:
    """What was asked for, known without loading the graph."""

    config: TokenizeConfig
    tokens: TokenSettings
    options: DatasetOptions
    identity: dict[str, Scalar]
    """What the graph's content depends on."""
    out: Path
    threads: int

    @classmethod
    def of(cls, config: TokenizeConfig) -> "Plan":
        """Check the settings and find out what they name. Raises ConfigError, DatasetError."""
        for name in config.ordering:
            if name not in ORDERINGS:
                raise ConfigError(
                    f"no ordering is called '{name}'; known: {', '.join(ORDERINGS)}{nearest(name, ORDERINGS)}"
                )
        tokens = TokenSettings(config.m, config.M, config.s, config.walk, config.seed)
        options = DatasetOptions(
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
        identity = dataset_identity(config.dataset, options)
        out = config.out or Path("data") / f"{store_name(config.dataset, options)}.zarr"
        return cls(config, tokens, options, identity, out, config.threads or available_threads())

    def encodings(self, rwse_mode: str) -> dict[str, dict[str, Scalar]]:
        """Settings of the encodings as the manifest keeps them; `rwse_mode` is what `auto` came to."""
        wanted: dict[str, dict[str, Scalar]] = {}
        if self.config.lap_pe:
            wanted["laplacian"] = {"k": self.config.lap_pe, "seed": self.config.seed}
        if self.config.rwse:
            wanted["random_walk"] = {"k": self.config.rwse, "mode": rwse_mode}
            if rwse_mode == "estimate":
                wanted["random_walk"]["seed"] = self.config.seed
        return wanted

    def orderings(self) -> dict[str, dict[str, Scalar]]:
        return {name: {"seed": self.config.seed} for name in sorted(set(self.config.ordering))}


def find_store(plan: Plan) -> tuple[Path, Manifest] | None:
    """A finished store that already serves the plan: the one at its place, or any beside it if no place was named.

    Raises StoreClashError where the place is taken by other content.
    """
    if plan.config.force:
        return None
    found = _complete_manifest(plan.out)
    if found is not None:
        if serves(found, plan):
            return plan.out, found
        if plan.config.out is None:
            beside = _search_beside(plan)
            if beside is not None:
                return beside
        raise StoreClashError(
            f"{plan.out} holds other content ({describe(found)}); choose another --out, or pass --force to replace it"
        )
    return _search_beside(plan) if plan.config.out is None else None


def _search_beside(plan: Plan) -> tuple[Path, Manifest] | None:
    for path in sorted(plan.out.parent.glob("*.zarr")):
        try:
            manifest = _complete_manifest(path)
        except StoreError:
            continue  # someone else's Zarr group, or a newer store: not ours to judge here
        if manifest is not None and serves(manifest, plan):
            return path, manifest
    return None


def _complete_manifest(path: Path) -> Manifest | None:
    from gmn_pipeline.store.writer import manifest_at

    manifest = manifest_at(path)
    return manifest if manifest is not None and manifest.state == "complete" else None


def serves(manifest: Manifest, plan: Plan) -> bool:
    """Whether a store holds all that is asked: the same graph, tokens at least as many, every encoding and ordering."""
    wanted = plan.encodings(plan.config.rwse_mode)
    return (
        manifest.dataset == plan.identity
        and manifest.tokens.covers(plan.tokens)
        and all(_encoding_serves(manifest.encodings.get(name), value) for name, value in wanted.items())
        and all(manifest.orderings.get(name) == value for name, value in plan.orderings().items())
    )


def _encoding_serves(has: dict[str, Scalar] | None, wants: dict[str, Scalar]) -> bool:
    """Encodings are stored lowest first, so a longer one serves a shorter one."""
    if has is None or int(has["k"] or 0) < int(wants["k"] or 0):
        return False
    mode = wants.get("mode", "auto")
    if mode != "auto" and has.get("mode") != mode:
        return False
    return has.get("seed") in (None, wants.get("seed", has.get("seed")))


def is_exactly(manifest: Manifest, plan: Plan) -> bool:
    """Whether a serving store holds nothing more than was asked."""
    same = {name: value["k"] for name, value in manifest.encodings.items()}
    asked = {name: value["k"] for name, value in plan.encodings("auto").items()}
    return manifest.tokens == plan.tokens and same == asked and manifest.orderings == plan.orderings()


def describe(manifest: Manifest) -> str:
    """A store's content in a few words."""
    t = manifest.tokens
    parts: list[Any] = [" ".join(f"{k}={v}" for k, v in manifest.dataset.items() if k != "content")]
    parts.append(f"m={t.m} M={t.M} s={t.s} walk={t.walk} seed={t.seed}")
    parts += [f"{name} k={value['k']}" for name, value in manifest.encodings.items()]
    parts.append(f"orderings {' '.join(manifest.orderings) or 'none'}")
    return ", ".join(parts)
