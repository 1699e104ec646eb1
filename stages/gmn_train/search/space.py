"""What a search tries: settings, their values, and where it starts. Data only: no torch and no Optuna here.

A dimension is a setting of `gmn-train settings` by its dotted key. It counts only where it means something: a model
that fixes the setting, or does not read it, leaves it out. What the user gives on the command line is never searched.
`DIMENSIONS.add(Dimension("clip", "...", Choice(0.0, 1.0)))` searches one more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gmn_pipeline.store.format.manifest import Manifest
from gmn_pipeline.tables import Table
from gmn_train.model.tables import BRANCHES, CONTROL, MODELS


@dataclass(frozen=True, init=False)
class Choice:
    """One of some values. The defaults' own value is always one of them."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)


@dataclass(frozen=True)
class Range:
    """A number between two, both included; whole where both are. Widened where the defaults' own lies outside.

    With `log`, defaults of 0 are tried as the lowest value.
    """

    low: float
    high: float
    log: bool = False
    """Drawn evenly by its logarithm."""


Values = Choice | Range
Settings = Mapping[str, Any]
"""All settings of a run by dotted key, as far as they are drawn."""


def always(settings: Settings, manifest: Manifest) -> bool:  # noqa: ARG001
    return True


def with_tokens(settings: Settings, manifest: Manifest) -> bool:
    return settings["model.token_blocks"] != "none" and manifest.tokens.m > 0


def with_node_layers_of_gmn(settings: Settings, manifest: Manifest) -> bool:  # noqa: ARG001
    return MODELS[settings["model.name"]].code == MODELS["gmn"].code


def with_node_scan(settings: Settings, manifest: Manifest) -> bool:
    return bool(settings["model.node_scan"]) and len(manifest.orderings) > 1


def with_numbers(settings: Settings, manifest: Manifest) -> bool:  # noqa: ARG001
    return manifest.graph.x is not None and manifest.graph.x.categories is None


def with_encodings(settings: Settings, manifest: Manifest) -> bool:  # noqa: ARG001
    return bool(manifest.encodings)


def in_mode(mode: str) -> "Callable[[Settings, Manifest], bool]":
    return lambda settings, manifest: settings["mode"] == mode  # noqa: ARG005


def up_to_stored(name: str) -> Callable[[Manifest], Choice]:
    """1, 2, 4, ... and what the store has: smaller ones are slices of it."""

    def values(manifest: Manifest) -> Choice:
        most = int(getattr(manifest.tokens, name))
        return Choice(*sorted({2**i for i in range(most.bit_length()) if 2**i <= most} | {most}))

    return values


@dataclass(frozen=True)
class Dimension:
    """One setting to search."""

    name: str
    """Its dotted key."""
    line: str
    """Why it is worth trying."""
    values: Values | Callable[[Manifest], Values]
    when: Callable[[Settings, Manifest], bool] = always
    """Whether it means something beside the settings drawn before it."""

    def values_for(self, manifest: Manifest) -> Values:
        return self.values if isinstance(self.values, Choice | Range) else self.values(manifest)


DIMENSIONS = Table(
    "search dimension",
    (
        Dimension("model.name", "with tokens and scans, with the node scan alone, or neither",
                  Choice("gmn", "gps+mamba", CONTROL)),
        Dimension("lr", "what matters most, nearly everywhere", Range(3e-4, 0.03, log=True)),
        Dimension("weight_decay", "holds large weights back on small sets", Range(1e-6, 0.3, log=True)),
        Dimension("model.width", "features per node", Choice(32, 64, 96, 128)),
        Dimension("model.node_layers", "how far messages go", Range(2, 12, log=True)),
        Dimension("model.dropout", "against overfitting", Range(0.0, 0.6)),
        Dimension("model.feature_mask", "hides features: helps where neighbours say as much", Range(0.0, 0.5)),
        Dimension("model.input_dropout", "hides single values: helps where columns are many and labels few",
                  Range(0.0, 0.6), with_numbers),
        Dimension("model.norm", "of node layers", Choice("batch", "layer", "none"), with_node_layers_of_gmn),
        Dimension("model.residual", "the skip of node layers", Choice("linear", "identity", "none"),
                  with_node_layers_of_gmn),
        Dimension("model.head_reads", "the last layer, or all", Choice("last", "all"), with_node_layers_of_gmn),
        Dimension("model.activation", "of node layers and head", Choice("relu", "gelu"), with_node_layers_of_gmn),
        Dimension("model.head_layers", "hidden layers of the head", Choice(1, 2, 3)),
        Dimension("model.ffn", "feed-forward units after a node layer", Choice(0.0, 1.0, 2.0), with_node_layers_of_gmn),
        Dimension("model.mpnn", "how messages are passed", lambda _: Choice(*BRANCHES), with_node_layers_of_gmn),
        Dimension("model.encodings", "whether positions say anything", Choice("all", "none"), with_encodings),
        Dimension("model.token_blocks", "where tokens are read", Choice("input", "between", 2), with_tokens),
        Dimension("m", "how far walks go", up_to_stored("m"), with_tokens),
        Dimension("M", "how many walks make a token", up_to_stored("M"), with_tokens),
        Dimension("s", "tokens per level: longer sequences", up_to_stored("s"), with_tokens),
        Dimension("model.encoder", "how a token becomes a vector", Choice("local", "mean", "gine"), with_tokens),
        Dimension("model.token_layers", "scans over tokens", Choice(1, 2), with_tokens),
        Dimension("model.readout", "what of a sequence counts", Choice("last", "mean", "both-ends"), with_tokens),
        Dimension("model.token_dropout", "against overfitting on tokens", Choice(0.0, 0.1, 0.3), with_tokens),
        Dimension("model.node_scan", "a scan over all nodes", Choice(False, True), with_node_layers_of_gmn),
        Dimension("model.order", "the order of that scan", lambda stored: Choice(*stored.orderings), with_node_scan),
        Dimension("batch_size", "graphs per step", Choice(16, 32, 64, 128), in_mode("graphs")),
        Dimension("batch_nodes", "nodes per step", Choice(1024, 2048, 4096), in_mode("batch")),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Start:
    """Settings to try first, on top of the defaults. None of them is cut short: later ones are compared with them."""

    name: str
    line: str
    settings: Settings = field(default_factory=dict)


_MASKED = {"model.feature_mask": 0.25, "model.dropout": 0.05, "model.head_reads": "last"}
STARTS = Table(
    "start of a search",
    (
        Start("defaults", "what `gmn-train run` would do"),
        Start("control", "its message passing alone", {"model.name": CONTROL}),
        Start("masked", "hidden features instead of dropout, the last layer alone: what Minesweeper likes", _MASKED),
        Start("masked control", "the same for message passing alone", {**_MASKED, "model.name": CONTROL}),
    ),
)
