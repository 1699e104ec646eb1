"""The models by name, for `--model`: GMN, its controls and ablations, and the baselines, as changes of settings.

A model starts from the recipe's (or preset's) settings, so that depth, width, epochs and optimiser are those of GMN.
"""

from typing import Any

from gmn_pipeline.errors import ConfigError, nearest

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gmn": ("Graph Mamba: tokens, scans and message passing as the recipe has them", {}),
    "gmn-": ("GMN without message passing and positional encodings", {
        "mpnn": "none", "encodings": "none", "node_scan": True,
    }),
    "gps+mamba": ("m = 0: no tokens, a node scan beside message passing", {
        "token_blocks": "none", "node_scan": True,
    }),
    "mpnn": ("the control: GMN's message passing alone, same depth", {
        "token_blocks": "none", "node_scan": False, "mpnn_form": "sum",
    }),
    "gmn-one-direction": ("ablation: scans in one direction", {"bidirectional": False}),
    "gmn-no-mpnn": ("ablation: no message passing", {"mpnn": "none", "node_scan": True}),
    "gmn-pagerank": ("ablation: node scan in PageRank order", {"order": "pagerank", "node_scan": True}),
    "gmn-no-pe": ("ablation: no positional encodings", {"encodings": "none"}),
    "gmn-node-scan": ("ablation: with the node scan, in degree order", {"node_scan": True}),
    "gmn-input-tokens": ("ablation: tokens read once, from the input, as the paper has it", {
        "token_blocks": "input", "token_layers": 2,
    }),
    "gmn-token-mean": ("ablation: a plain mean over the tokens instead of the token scan", {
        "token_layers": 0, "readout": "mean",
    }),
    "mlp": ("features alone", {"architecture": "mlp"}),
    "gcn": ("GCNConv layers with residual", {"architecture": "gcn"}),
    "gatedgcn": ("ResGatedGraphConv layers with residual", {"architecture": "gatedgcn"}),
    "gin": ("GINEConv layers with residual", {"architecture": "gin"}),
    "gps": ("GPSConv layers with full attention", {"architecture": "gps"}),
    "gps-performer": ("GPSConv layers with Performer attention", {"architecture": "gps-performer"}),
}  # fmt: skip
"""By name: one line about it, and the settings of `[model]` it changes."""


def model_changes(name: str) -> dict[str, Any]:
    """The settings a model of the table changes; ConfigError names the nearest where there is none."""
    if name not in MODELS:
        raise ConfigError(f"there is no model '{name}'; allowed: {', '.join(MODELS)}{nearest(name, list(MODELS))}")
    return dict(MODELS[name][1])
