"""The model's settings. Tokens (m, M, s) are chosen by the view of the store, not here. No torch here."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

from gmn_pipeline.console.config import check_words, setting
from gmn_pipeline.errors import ConfigError, nearest
from gmn_pipeline.store.format.encodings import ENCODINGS
from gmn_train.model.tables import BACKENDS, BRANCHES, ENCODERS, MODELS, Model, Reads

WIDEST_SCAN = 64
"""By default: a scan's cost grows with the square of its width, and tokens are many."""

Readout = Literal["last", "mean", "both-ends"]
TokenOrder = Literal["far-first", "near-first"]
Residual = Literal["linear", "identity", "none"]
Activation = Literal["relu", "gelu"]
Norm = Literal["batch", "layer", "none"]


@dataclass(frozen=True)
class ModelConfig:
    """Every setting of the models, with its default."""

    name: str = setting("gmn", help="the model; `--model` sets it, `gmn-train models` lists them", names=MODELS)
    width: int = setting(64, help="features per node and token", group="Size")
    scan_width: int | None = setting(
        None, help="features per token, and per node of the node scan; default: the width, at most 64", group="Size"
    )
    node_layers: int = setting(6, help="layers over nodes", group="Size")
    states: int = setting(16, help="states per channel of a scan", group="Size")
    expand: float = setting(1.0, help="channels of a scan in multiples of the width", group="Size")
    conv_width: int = setting(4, help="taps of a scan's convolution", group="Size")
    dt_rank: int | None = setting(None, help="rank of Δ's projection; default: scan_width / 16", group="Size")

    encoder: str = setting("local", help="how a token becomes one vector", group="Tokens", names=ENCODERS)
    encoder_layers: int = setting(1, help="message-passing layers of the gatedgcn and gine encoders", group="Tokens")
    rwf_window: int = setting(8, help="steps back that the rwf encoder compares", group="Tokens")
    token_blocks: Literal["input", "between", "none"] | int | tuple[int, ...] = setting(
        "between",
        help="where tokens are read: `input` once from the features (the paper), `between` after every node layer but "
        "the last, a number k after every k-th but the last, a list of node layers (from 1) to read after, or `none`",
        group="Tokens",
    )
    token_layers: int = setting(
        1,
        help="BiMamba layers per token block; with `input` use at least 2; 0, with readout mean: none",
        group="Tokens",
    )
    readout: Readout = setting("last", help="which part of a scanned sequence becomes the node's state", group="Tokens")
    token_order: TokenOrder = setting(
        "far-first",
        help="far-first: levels m..0, the node itself last; near-first: Algorithm 1 as printed",
        group="Tokens",
    )
    repeats: Literal["draw", "stored"] = setting(
        "draw",
        help="draw: new repeats in a new order for each training epoch; stored: as stored",
        group="Tokens",
    )

    bidirectional: bool = setting(True, help="scan both ways", group="Scan")
    shared_A: bool = setting(False, help="one A for both directions, as Algorithm 2 has it", group="Scan")  # noqa: N815
    scan_backend: str = setting(
        "auto", help="implementation of the scan; auto: by device", group="Scan", names=BACKENDS, also=("auto",)
    )

    node_scan: bool | tuple[int, ...] = setting(
        True,
        help="scan over nodes beside message passing: true, in every node layer; a list of layers (from 1); or false",
        group="Nodes",
    )
    order: str = setting("degree", help="ordering of the nodes' scan, one of the store's, or `random`", group="Nodes")
    order_ties: Literal["epoch", "fixed"] = setting(
        "epoch", help="ties of the ordering are drawn for each epoch, or once (fixed); never by node id", group="Nodes"
    )
    mpnn: str = setting(
        "gcn", help="message passing in every node layer", group="Nodes", names=BRANCHES, also=("none",)
    )
    mpnn_form: Literal["sum", "literal"] = setting(
        "sum", help="sum: in every node layer (GPS); literal: once, on the raw input (Algorithm 1)", group="Nodes"
    )
    residual: Residual = setting(
        "linear", help="a node layer's skip: a linear map, the identity (ReLU before the sum), or none", group="Nodes"
    )
    activation: Activation = setting("relu", help="of node layers and the head", group="Nodes")
    norm: Norm = setting("batch", help="norm of a node layer", group="Nodes")
    ffn: float = setting(0.0, help="feed-forward units after a node layer in multiples of the width", group="Nodes")

    encodings: str = setting(
        "all",
        help="which of the stored positional encodings to use",
        group="Input",
        names=ENCODINGS,
        also=("all", "none"),
    )
    lap_signs: Literal["flip", "stored"] = setting(
        "flip", help="signs of Laplacian vectors; flip: drawn per graph and training epoch", group="Input"
    )
    encoding_norm: bool = setting(False, help="BatchNorm of the encodings before they are projected", group="Input")
    log_degree: bool = setting(True, help="log(1 + degree) as an input", group="Input")
    degree_profile: bool = setting(
        False, help="least, greatest, mean and spread of the neighbours' log degrees as inputs", group="Input"
    )
    feature_mask: float = setting(0.25, help="share of nodes whose features are hidden in training", group="Input")
    input_dropout: float = setting(0.0, help="share of single feature values hidden in training", group="Input")

    dropout: float = setting(0.1, help="dropout of node layers and the head", group="Training")
    token_dropout: float = setting(0.0, help="dropout of token encodings, keyed by node", group="Training")
    pool: Literal["mean", "max", "sum"] = setting("mean", help="pooling of graph tasks", group="Head")
    head_layers: int = setting(1, help="hidden layers of the head", group="Head")
    head_reads: Literal["last", "all"] = setting(
        "last", help="the states of the last node layer, or of the input and all node layers", group="Head"
    )

    def __post_init__(self) -> None:
        check_words(self)
        for name in ("width", "scan_width", "states", "conv_width", "encoder_layers", "rwf_window"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("dropout", "token_dropout", "input_dropout", "feature_mask"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must lie in [0, 1)")
        if self.token_layers < (0 if self.readout == "mean" else 1):
            raise ConfigError(f"token_layers is {self.token_layers}; it must be at least 1, or 0 with readout = mean")
        if min(self.node_layers, self.ffn, self.head_layers) < 0 or self.expand <= 0:
            raise ConfigError("node_layers, ffn and head_layers must not be negative, and expand must be above 0")
        if isinstance(self.token_blocks, list):
            object.__setattr__(self, "token_blocks", tuple(self.token_blocks))
        if isinstance(self.token_blocks, int) and self.token_blocks < 1:
            raise ConfigError(f"token_blocks is {self.token_blocks}; a number must be at least 1, or use `none`")
        if isinstance(self.node_scan, list):
            object.__setattr__(self, "node_scan", tuple(self.node_scan))
        self._check_layers("token_blocks", self.blocks_after)
        self._check_layers("node_scan", self.scan_layers)
        self.model.check(self)

    def _check_layers(self, name: str, layers: tuple[int, ...]) -> None:
        outside = [layer for layer in layers if not 1 <= layer <= self.node_layers]
        if outside:
            raise ConfigError(
                f"{name} names layer {outside[0]}; with node_layers = {self.node_layers}, layers are "
                f"1..{self.node_layers}"
            )
        if len(set(layers)) < len(layers):
            raise ConfigError(f"{name} = {getattr(self, name)} names a layer twice")

    @property
    def model(self) -> Model:
        """The model's entry in the table."""
        return MODELS[self.name]

    @cached_property
    def reads(self) -> Reads:
        """What the model reads of a store at these settings."""
        return self.model.reads(self)

    @property
    def scanned_width(self) -> int:
        """Features per token and per scanned node. Beyond 64, scans cost more than they bring."""
        return min(self.width, WIDEST_SCAN) if self.scan_width is None else self.scan_width

    @property
    def degree_columns(self) -> int:
        """Inputs per node that say something about degrees."""
        return int(self.log_degree) + 4 * int(self.degree_profile)

    @property
    def blocks_after(self) -> tuple[int, ...]:
        """Node layers, counted from 1, after which a token block stands."""
        if isinstance(self.token_blocks, tuple):
            return self.token_blocks
        every = 1 if self.token_blocks == "between" else self.token_blocks
        return tuple(range(every, self.node_layers, every)) if isinstance(every, int) else ()

    @property
    def scan_layers(self) -> tuple[int, ...]:
        """Node layers, counted from 1, that scan the nodes beside passing messages."""
        if isinstance(self.node_scan, tuple):
            return self.node_scan
        return tuple(range(1, self.node_layers + 1)) if self.node_scan else ()

    @property
    def reads_input_tokens(self) -> bool:
        return self.token_blocks == "input"

    @classmethod
    def of(cls, name: str, **changes: Any) -> "ModelConfig":
        """The settings of a model by name, some of them changed; ConfigError where a change undoes the model."""
        entry = MODELS.find(name)
        config = cls().changed(**{"name": entry.name, **entry.starts, **entry.fixes, **changes})
        check_fixed(config, dict.fromkeys(changes, "the call"), changes)
        return config

    def changed(self, **changes: Any) -> "ModelConfig":
        """These settings with some changed; ConfigError names the nearest where one is unknown."""
        known = [item.name for item in fields(self)]
        for key in changes:
            if key not in known:
                raise ConfigError(f"unknown setting '{key}'{nearest(key, known)}; settings: {', '.join(known)}")
        return replace(self, **changes)


def check_fixed(config: ModelConfig, sources: Mapping[str, str], given: Collection[str]) -> None:
    """ConfigError where settings undo what the model is.

    sources: who set what, for the message. given: what the user set, beside recipe and rule.
    """
    for key, value in config.model.fixes.items():
        if getattr(config, key) != value:
            raise ConfigError(
                f"model {config.name} requires {key} = {toml_word(value)}, but {sources.get(key, 'a setting')} sets it "
                f"to {toml_word(getattr(config, key))}; remove that, or choose another model"
            )
    for need in config.model.needs:
        if not need.is_met(config) and set(need.keys) & set(given):
            raise ConfigError(f"model {config.name} needs {need.line}; {need.remedy}, or choose another model")


def toml_word(value: Any) -> str:
    """A value as --set takes it."""
    return str(value).lower() if isinstance(value, bool) else str(list(value) if isinstance(value, tuple) else value)
