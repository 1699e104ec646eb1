"""What a store holds and a model does not read. No torch here."""

from gmn_pipeline.store.format.manifest import Manifest
from gmn_train.settings.model_settings import ModelConfig


def unread_parts(manifest: Manifest, model: ModelConfig) -> list[str]:
    """Stored parts that the model leaves alone, in a person's words; empty where it reads everything."""
    reads, parts = model.reads, []
    if manifest.graph.edge_attr is not None and "edge_features" not in reads:
        parts.append("edge features")
    for name in manifest.encodings:
        if "encodings" not in reads or model.encodings not in ("all", name):
            parts.append(f"encoding {name}")
    if "tokens" not in reads:
        parts.append("tokens")
    else:
        parts += ["edges inside tokens"] if "token_edges" not in reads else []
        parts += ["walks"] if "walks" not in reads else []
    for name in manifest.orderings:
        if "ordering" not in reads or model.order != name:
            parts.append(f"ordering {name}")
    return parts
