"""The model's settings. Tokens (m, M, s) are chosen by the view of the store, not here."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from gmn_pipeline.console.config import setting
from gmn_pipeline.errors import ConfigError, nearest
from gmn_train.model.encoders import ENCODERS
from gmn_train.model.layers.branches import BRANCHES
from gmn_train.model.scan import BACKENDS

Architecture = Literal["gmn", "mlp", "gcn", "gatedgcn", "gin", "gps", "gps-performer"]
Encodings = Literal["all", "laplacian", "random_walk", "none"]


@dataclass(frozen=True)
class ModelConfig:
    """Every choice the model offers. `preset("default")` is what works best, `preset("paper")` the literal reading."""

    architecture: Architecture = setting(
        "gmn", help="gmn, or a baseline of PyG's layers; `--model` sets it with what belongs to it", group="Size"
    )
    width: int = setting(64, help="features per node and token", group="Size")
    node_layers: int = setting(6, help="layers over nodes", group="Size")
    states: int = setting(16, help="states per channel of a scan", group="Size")
    expand: float = setting(1.0, help="channels of a scan in multiples of the width", group="Size")
    conv_width: int = setting(4, help="taps of a scan's convolution", group="Size")
    dt_rank: int | None = setting(
        None, help="rank of Δ's projection; a sixteenth of the width unless given", group="Size"
    )

    encoder: str = setting("local", help=f"token encoder: {', '.join(ENCODERS)}", group="Tokens")
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
    readout: Literal["last", "mean", "both-ends"] = setting(
        "last", help="what of a scanned sequence becomes the node's state", group="Tokens"
    )
    token_order: Literal["far-first", "near-first"] = setting(
        "far-first",
        help="far-first: levels m..0, the node itself last; near-first: Algorithm 1 as printed",
        group="Tokens",
    )
    repeats: Literal["draw", "stored"] = setting(
        "draw",
        help="draw: which repeats, and their order, anew for each training epoch; stored: as stored",
        group="Tokens",
    )

    bidirectional: bool = setting(True, help="scan both ways", group="Scan")
    shared_A: bool = setting(False, help="one A for both directions, as Algorithm 2 has it", group="Scan")  # noqa: N815
    scan_backend: str = setting("auto", help=f"auto, {', '.join(BACKENDS)}", group="Scan")

    node_scan: bool = setting(True, help="scan over nodes; without it, node layers pass messages only", group="Nodes")
    order: str = setting("degree", help="ordering of the nodes' scan, one of the store's, or `random`", group="Nodes")
    order_ties: Literal["epoch", "fixed"] = setting(
        "epoch", help="ties of the ordering: drawn for each epoch, or once; never by node id", group="Nodes"
    )
    mpnn: str = setting("gcn", help=f"message-passing branch: {', '.join(BRANCHES)} or none", group="Nodes")
    mpnn_form: Literal["sum", "literal"] = setting(
        "sum", help="sum: in every node layer (GPS); literal: once, on the raw input (Algorithm 1)", group="Nodes"
    )
    residual: Literal["linear", "identity"] = setting(
        "linear", help="a node layer's skip: a linear map and ReLU after the norm, or the identity", group="Nodes"
    )
    norm: Literal["batch", "layer", "none"] = setting("batch", help="norm of a node layer", group="Nodes")
    ffn: float = setting(0.0, help="feed-forward units after a node layer in multiples of the width", group="Nodes")

    encodings: Encodings = setting("all", help="positional encodings to use of those stored", group="Input")
    lap_signs: Literal["flip", "stored"] = setting(
        "flip", help="flip: Laplacian signs drawn per graph and training epoch", group="Input"
    )
    log_degree: bool = setting(True, help="log(1 + degree) as an input", group="Input")
    feature_mask: float = setting(0.0, help="share of nodes whose features are hidden in training", group="Input")

    dropout: float = setting(0.1, help="of node layers and the head", group="Training")
    token_dropout: float = setting(0.0, help="of token encodings, keyed by node", group="Training")
    pool: Literal["mean", "max", "sum"] = setting("mean", help="pooling of graph tasks", group="Head")

    def __post_init__(self) -> None:
        for name in ("width", "states", "conv_width", "encoder_layers", "rwf_window"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("dropout", "token_dropout", "feature_mask"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must lie in [0, 1)")
        for name, allowed in (
            ("encoder", [*ENCODERS]),
            ("mpnn", [*BRANCHES, "none"]),
            ("scan_backend", ["auto", *BACKENDS]),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise ConfigError(f"{name} is '{value}'; allowed: {', '.join(allowed)}{nearest(str(value), allowed)}")
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if isinstance(value, str) and value not in choices:
                raise ConfigError(f"{name} is '{value}'; allowed: {', '.join(choices)}{nearest(value, choices)}")
        if self.token_layers < (0 if self.readout == "mean" else 1):
            raise ConfigError(f"token_layers is {self.token_layers}; it must be at least 1, or 0 with readout = mean")
        if self.node_layers < 0 or self.ffn < 0 or self.expand <= 0:
            raise ConfigError("node_layers and ffn must not be negative, and expand must be above 0")
        if isinstance(self.token_blocks, list):
            object.__setattr__(self, "token_blocks", tuple(self.token_blocks))
        if isinstance(self.token_blocks, int) and self.token_blocks < 1:
            raise ConfigError(f"token_blocks is {self.token_blocks}; a number must be at least 1, or use `none`")
        outside = [layer for layer in self.blocks_after if not 1 <= layer <= self.node_layers]
        if outside:
            raise ConfigError(
                f"token_blocks names layer {outside[0]}; with node_layers = {self.node_layers}, layers are "
                f"1..{self.node_layers}"
            )
        if len(set(self.blocks_after)) < len(self.blocks_after):
            raise ConfigError(f"token_blocks = {self.token_blocks} names a layer twice")
        idle = not self.node_scan and (self.mpnn == "none" or self.mpnn_form == "literal")
        if self.architecture == "gmn" and self.node_layers and idle:
            raise ConfigError(
                "node_scan = false leaves node layers nothing to do; set mpnn to gcn, with mpnn_form = sum"
            )

    @property
    def blocks_after(self) -> tuple[int, ...]:
        """Node layers, counted from 1, after which a token block stands."""
        if isinstance(self.token_blocks, tuple):
            return self.token_blocks
        every = 1 if self.token_blocks == "between" else self.token_blocks
        return tuple(range(every, self.node_layers, every)) if isinstance(every, int) else ()

    @property
    def reads_input_tokens(self) -> bool:
        return self.token_blocks == "input"

    @property
    def uses_tokens(self) -> bool:
        return self.architecture == "gmn" and (self.reads_input_tokens or bool(self.blocks_after))

    @property
    def uses_edge_features(self) -> bool:
        """Whether the branch or the token encoder reads them: `gcn`, `mean` and `local` do not."""
        if self.architecture in ("mlp", "gcn", "gatedgcn", "gin"):
            return self.architecture in ("gatedgcn", "gin")
        return self.mpnn in ("gatedgcn", "gine") or (self.uses_tokens and self.encoder in ("gatedgcn", "gine", "rwf"))

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ModelConfig":
        """A preset, `default` or `paper`, with some settings changed; ConfigError for an unknown name or setting."""
        return cls().changed(**{**preset_changes(name), **changes})

    def changed(self, **changes: Any) -> "ModelConfig":
        """These settings with some changed; ConfigError names the nearest where one is unknown."""
        known = [item.name for item in fields(self)]
        for key in changes:
            if key not in known:
                raise ConfigError(f"unknown setting '{key}'{nearest(key, known)}; settings: {', '.join(known)}")
        return replace(self, **changes)


CHOICES: dict[str, tuple[str, ...]] = {
    "architecture": get_args(Architecture),
    "token_blocks": ("input", "between", "none"),
    "readout": ("last", "mean", "both-ends"),
    "token_order": ("far-first", "near-first"),
    "repeats": ("draw", "stored"),
    "order_ties": ("epoch", "fixed"),
    "mpnn_form": ("sum", "literal"),
    "residual": ("linear", "identity"),
    "norm": ("batch", "layer", "none"),
    "encodings": ("all", "laplacian", "random_walk", "none"),
    "lap_signs": ("flip", "stored"),
    "pool": ("mean", "max", "sum"),
}
"""The words each setting allows, for a config made in Python; `load_config` checks types by the annotations."""

PRESETS: dict[str, dict[str, Any]] = {
    # On Minesweeper, tokens of hidden states beat plain message passing at equal depth
    # (docs/decisions/0005-minesweeper-search.md).
    "default": {"feature_mask": 0.25},
    # Algorithms 1 and 2: tokens once, from features and encodings; Ψ once, on the raw input; Mamba's expansion of 2.
    "paper": {
        "encoder": "gatedgcn",
        "token_blocks": "input",
        "token_layers": 2,
        "node_layers": 2,
        "expand": 2.0,
        "shared_A": True,
        "mpnn": "gatedgcn",
        "mpnn_form": "literal",
        "residual": "identity",
        "norm": "none",
        "log_degree": False,
        "token_dropout": 0.0,
    },
}


def preset_changes(name: str) -> dict[str, Any]:
    """What a preset sets; ConfigError names the nearest where there is none."""
    if name not in PRESETS:
        raise ConfigError(f"there is no preset '{name}'; allowed: {', '.join(PRESETS)}{nearest(name, list(PRESETS))}")
    return dict(PRESETS[name])
