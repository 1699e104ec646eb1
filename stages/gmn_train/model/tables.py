"""Every model, message-passing branch, token encoder and scan by name, with what it reads of a store. No torch here.

An entry's `code` names what makes the part, `package.module:name`, and is imported when a model is built. From outside
the package `code` may be the function itself: `ENCODERS.add(Encoder("mine", make_mine, reads={"token_edges"}))`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gmn_pipeline.errors import ConfigError
from gmn_pipeline.tables import Table

if TYPE_CHECKING:
    from gmn_train.settings.model_settings import ModelConfig

Code = str | Callable[..., Any]
Reads = frozenset[str] | set[str]
"""Words of `READABLE`."""
NOTHING: frozenset[str] = frozenset()
HEADS = 4
"""Attention heads of the gps baselines."""


@dataclass(frozen=True)
class Readable:
    """Something that a model can ask for beside features, degrees and edges."""

    name: str
    line: str
    code: Code | None = None
    """For inputs of few models: `function(source, node_ids, epoch)` -> the tensor `inputs.extra[name]`."""


READABLE = Table(
    "input",
    (
        Readable("tokens", "the nodes of each token"),
        Readable("token_edges", "the edges inside each token"),
        Readable("walks", "the order of visits inside each token"),
        Readable("edge_features", "features of the graph's edges"),
        Readable("encodings", "positional encodings"),
        Readable("ordering", "an order of the nodes"),
    ),
)


@dataclass(frozen=True)
class Branch:
    """Message passing inside a node layer. code: `(config, edge_features)` -> module(h, near, edge_states)."""

    name: str
    code: Code
    reads: Reads = NOTHING


BRANCHES = Table(
    "message-passing branch",
    (
        Branch("gcn", "gmn_train.model.message_passing.branches:make_gcn"),
        Branch("gatedgcn", "gmn_train.model.message_passing.branches:make_gatedgcn", {"edge_features"}),
        Branch("gcn-edges", "gmn_train.model.message_passing.branches:make_gcn_edges", {"edge_features"}),
        Branch("gine", "gmn_train.model.message_passing.branches:make_gine", {"edge_features"}),
    ),
)


@dataclass(frozen=True)
class Encoder:
    """A token encoder: see `encoders`. code: `(config, edge_features)` -> module."""

    name: str
    code: Code
    reads: Reads = NOTHING


ENCODERS = Table(
    "token encoder",
    (
        Encoder("mean", "gmn_train.model.encoders.mean:make"),
        Encoder("local", "gmn_train.model.encoders.local:make", {"token_edges"}),
        Encoder("gatedgcn", "gmn_train.model.encoders.gatedgcn:make", {"token_edges", "edge_features"}),
        Encoder("gine", "gmn_train.model.encoders.gine:make", {"token_edges", "edge_features"}),
        Encoder("rwf", "gmn_train.model.encoders.rwf:make", {"token_edges", "walks", "edge_features"}),
    ),
)


@dataclass(frozen=True)
class ScanBackend:
    """An implementation of the selective scan. code: see `scan`."""

    name: str
    code: Code
    line: str


BACKENDS = Table(
    "scan backend",
    (
        ScanBackend("reference", "gmn_train.model.scan.reference:scan", "any device and type; slow"),
        ScanBackend("numba", "gmn_train.model.scan.numba_scan:scan", "CPU, float32 and float64"),
        ScanBackend("mamba", "gmn_train.model.scan.mamba:scan", "CUDA, needs mamba-ssm"),
    ),
)


def gmn_reads(config: "ModelConfig") -> Reads:
    """What GMN reads follows from its settings."""
    reads = set(BRANCHES[config.mpnn].reads) if config.mpnn != "none" else set()
    if config.reads_input_tokens or config.blocks_after:
        reads |= {"tokens"} | ENCODERS[config.encoder].reads
    return reads | ({"ordering"} if config.node_scan else set()) | encodings_read(config)


def encodings_read(config: "ModelConfig") -> Reads:
    return NOTHING if config.encodings == "none" else {"encodings"}


def edges_read(config: "ModelConfig") -> Reads:
    return encodings_read(config) | {"edge_features"}


def gps_reads(config: "ModelConfig") -> Reads:
    return encodings_read(config) | (BRANCHES[config.mpnn].reads if config.mpnn != "none" else NOTHING)


def check_gmn(config: "ModelConfig") -> None:
    silent = config.mpnn == "none" or config.mpnn_form == "literal"
    if silent and len(config.scan_layers) < config.node_layers:
        what = "false" if not config.node_scan else str(list(config.scan_layers))
        raise ConfigError(f"node_scan = {what} leaves node layers nothing to do; set mpnn to gcn, with mpnn_form = sum")


def check_gps(config: "ModelConfig") -> None:
    if config.width % HEADS:
        raise ConfigError(f"gps has {HEADS} attention heads, which do not divide width {config.width}")


@dataclass(frozen=True)
class Model:
    """A model by name. code: `(config, facts)` -> GraphModel."""

    name: str
    line: str
    """What `gmn-train models` says of it."""
    code: Code
    reads: "Callable[[ModelConfig], Reads]"
    fixes: Mapping[str, Any] = field(default_factory=dict)
    """Settings of `[model]` that make it what it is; other values are refused."""
    starts: Mapping[str, Any] = field(default_factory=dict)
    """Settings of `[model]` that it begins with."""
    check: "Callable[[ModelConfig], None]" = lambda _: None
    """ConfigError for settings it cannot have."""


def _gmn(
    name: str, line: str, fixes: Mapping[str, Any] | None = None, starts: Mapping[str, Any] | None = None
) -> Model:
    return Model(name, line, "gmn_train.model.gmn:GMN", gmn_reads, fixes or {}, starts or {}, check_gmn)


def _baseline(name: str, line: str, reads: "Callable[[ModelConfig], Reads]", **options: Any) -> Model:
    return Model(name, line, "gmn_train.model.baselines.baseline:Baseline", reads, **options)


CONTROL = "mpnn"
"""The model to beat: GMN's message passing alone."""

MODELS = Table(
    "model",
    (
        _gmn("gmn", "Graph Mamba: tokens, scans and message passing"),
        _gmn(
            "gmn-paper", "Graph Mamba as the paper writes it: tokens and message passing once, on the input",
            {"token_blocks": "input", "mpnn_form": "literal", "node_scan": True, "shared_A": True,
             "residual": "identity", "norm": "none", "head_reads": "last", "log_degree": False},
            {"encoder": "gatedgcn", "token_layers": 2, "node_layers": 2, "expand": 2.0, "mpnn": "gatedgcn",
             "token_dropout": 0.0, "feature_mask": 0.0},
        ),
        _gmn("gmn-", "GMN without message passing and positional encodings",
             {"mpnn": "none", "encodings": "none", "node_scan": True}),
        _gmn("gps+mamba", "m = 0: no tokens, a node scan beside message passing",
             {"token_blocks": "none", "node_scan": True}),
        _gmn("mpnn", "the control: GMN's message passing alone, same depth",
             {"token_blocks": "none", "node_scan": False, "mpnn_form": "sum"}),
        _gmn("gmn-one-direction", "ablation: scans in one direction", {"bidirectional": False}),
        _gmn("gmn-no-mpnn", "ablation: no message passing", {"mpnn": "none", "node_scan": True}),
        _gmn("gmn-pagerank", "ablation: node scan in PageRank order", {"order": "pagerank", "node_scan": True}),
        _gmn("gmn-no-pe", "ablation: no positional encodings", {"encodings": "none"}),
        _gmn("gmn-node-scan", "ablation: with the node scan, in degree order", {"node_scan": True}),
        _gmn("gmn-input-tokens", "ablation: tokens read once, from the input, as the paper has it",
             {"token_blocks": "input"}, {"token_layers": 2}),
        _gmn("gmn-token-mean", "ablation: a plain mean over the tokens instead of the token scan",
             {"token_layers": 0, "readout": "mean"}),
        _baseline("mlp", "features alone", encodings_read),
        _baseline("gcn", "GCNConv layers with residual", encodings_read),
        _baseline("gatedgcn", "ResGatedGraphConv layers with residual", edges_read),
        _baseline("gin", "GINEConv layers with residual", edges_read),
        _baseline("gps", "GPSConv layers with full attention", gps_reads, check=check_gps),
        _baseline("gps-performer", "GPSConv layers with Performer attention", gps_reads, check=check_gps),
    ),
)  # fmt: skip
