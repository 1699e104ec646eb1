"""Every model, message-passing branch, token encoder and scan by name, with what it reads of a store. No torch here.

An entry's `code` names what makes the part, `package.module:name`, and is imported when a model is built. From outside
the package `code` may be the function itself: `ENCODERS.add(Encoder("mine", make_mine, reads={"token_edges"}))`.
"""

from collections.abc import Callable, Mapping, Sequence
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
    convolution: Code | None = None
    """PyG's layer of that kind, for the baselines: `(width, edge_features)` -> module(x, edge_index, edge_states)."""


BRANCHES = Table(
    "message-passing branch",
    (
        Branch("gcn", "gmn_train.model.message_passing.branches:make_gcn",
               convolution="gmn_train.model.baselines.convolutions:GcnConvolution"),
        Branch("gatedgcn", "gmn_train.model.message_passing.branches:make_gatedgcn", {"edge_features"},
               "gmn_train.model.baselines.convolutions:GatedConvolution"),
        Branch("gcn-edges", "gmn_train.model.message_passing.branches:make_gcn_edges", {"edge_features"}),
        Branch("gine", "gmn_train.model.message_passing.branches:make_gine", {"edge_features"},
               "gmn_train.model.baselines.convolutions:GineConvolution"),
    ),
)  # fmt: skip


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
    if reads_tokens(config):
        reads |= {"tokens"} | ENCODERS[config.encoder].reads
    return reads | ({"ordering"} if config.node_scan else set()) | encodings_read(config)


def reads_tokens(config: "ModelConfig") -> bool:
    return config.reads_input_tokens or bool(config.blocks_after)


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
        raise ConfigError(
            f"node_scan = {what} leaves node layers with nothing to do; set mpnn to gcn, with mpnn_form = sum"
        )


def check_gps(config: "ModelConfig") -> None:
    if config.width % HEADS:
        raise ConfigError(f"gps has {HEADS} attention heads, which do not divide width {config.width}")
    known = ["none", *(branch.name for branch in BRANCHES.values() if branch.convolution)]
    if config.mpnn not in known:
        raise ConfigError(f"model {config.name} has no mpnn = {config.mpnn}; set it to one of {', '.join(known)}")


@dataclass(frozen=True)
class Need:
    """What the user's settings must leave of a model, so that it is not another one."""

    line: str
    is_met: "Callable[[ModelConfig], bool]"
    remedy: str
    keys: tuple[str, ...] = ("token_blocks", "node_scan", "token_layers")
    """Settings that may take it away. Others, such as the number of layers, may do so beside a recipe's."""


READING = "set model.token_blocks to between or input"
TOKENS = Need("tokens", reads_tokens, READING)
TOKENS_OR_SCAN = Need(
    "tokens or a node scan, without which it is the control, mpnn",
    lambda config: reads_tokens(config) or bool(config.scan_layers),
    f"{READING}, or model.node_scan to true",
)
SCAN = Need(
    "a scan, and these settings leave none",
    lambda config: bool(config.scan_layers) or (reads_tokens(config) and config.token_layers > 0),
    f"{READING} with token_layers of at least 1, or model.node_scan to true",
)
MESSAGES = Need("message passing", lambda config: config.mpnn != "none", "set model.mpnn to gcn", ("mpnn",))


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
    needs: Sequence[Need] = ()
    """Asked once all settings are chosen."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """For its code: what this one is made of."""


def _gmn(
    name: str,
    line: str,
    fixes: Mapping[str, Any] | None = None,
    starts: Mapping[str, Any] | None = None,
    needs: Sequence[Need] = (TOKENS_OR_SCAN,),
) -> Model:
    return Model(name, line, "gmn_train.model.gmn:GMN", gmn_reads, fixes or {}, starts or {}, check_gmn, needs)


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
             {"token_blocks": "none", "node_scan": True}, needs=(MESSAGES,)),
        _gmn("mpnn", "the control: GMN's message passing alone, same depth",
             {"token_blocks": "none", "node_scan": False, "mpnn_form": "sum"}, needs=()),
        _gmn("gmn-one-direction", "ablation: scans in one direction", {"bidirectional": False}, needs=(SCAN,)),
        _gmn("gmn-no-mpnn", "ablation: no message passing", {"mpnn": "none", "node_scan": True}),
        _gmn("gmn-pagerank", "ablation: node scan in PageRank order", {"order": "pagerank", "node_scan": True}),
        _gmn("gmn-no-pe", "ablation: no positional encodings", {"encodings": "none"}),
        _gmn("gmn-node-scan", "ablation: with the node scan, in degree order", {"order": "degree", "node_scan": True}),
        _gmn("gmn-input-tokens", "ablation: tokens read once, from the input, as the paper has it",
             {"token_blocks": "input"}, {"token_layers": 2}),
        _gmn("gmn-token-mean", "ablation: a plain mean over the tokens instead of the token scan",
             {"token_layers": 0, "readout": "mean"}, needs=(TOKENS,)),
        _baseline("mlp", "features alone", encodings_read),
        _baseline("gcn", "GCNConv layers with residual", encodings_read, parts={"convolution": "gcn"}),
        _baseline("gatedgcn", "ResGatedGraphConv layers with residual", edges_read, parts={"convolution": "gatedgcn"}),
        _baseline("gin", "GINEConv layers with residual", edges_read, parts={"convolution": "gine"}),
        _baseline("gps", "GPSConv layers with full attention", gps_reads, check=check_gps,
                  parts={"attention": "multihead"}),
        _baseline("gps-performer", "GPSConv layers with Performer attention", gps_reads, check=check_gps,
                  parts={"attention": "performer"}),
    ),
)  # fmt: skip
