"""Draws a node's tokens side by side, all on one layout, so that the same node stands in the same place."""

import math
from pathlib import Path
from typing import Any

from gmn_pipeline.errors import ConfigError

PANEL = 1.9  # inches
COLUMNS = 6
FAINT, MEMBER, OWN = "#dddddd", "#2a6f97", "#d1495b"


def draw_tokens(node: int, tokens: list[dict[str, Any]], file: Path) -> None:
    """Draw the tokens of `node` ({"level", "repeat", "nodes", "edges"} each) into a PNG; the node itself is red."""
    import matplotlib

    matplotlib.use("agg")
    import networkx as nx
    from matplotlib import pyplot as plt

    everything = nx.Graph()
    for token in tokens:
        everything.add_nodes_from(token["nodes"])
        everything.add_edges_from(map(tuple, token["edges"]))
    place = nx.spring_layout(everything, seed=0, iterations=150) if len(everything) > 1 else {node: (0.0, 0.0)}

    columns = min(COLUMNS, len(tokens))
    rows = math.ceil(len(tokens) / columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(PANEL * columns, (PANEL + 0.25) * rows + 0.3),
        squeeze=False,
        layout="constrained",
    )
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, token in zip(axes.flat, tokens, strict=False):
        inside = {"pos": place, "ax": axis, "nodelist": token["nodes"]}
        nx.draw_networkx_nodes(everything, place, ax=axis, node_size=5, node_color=FAINT, linewidths=0)
        edges = [tuple(edge) for edge in token["edges"] if edge[0] != edge[1]]
        nx.draw_networkx_edges(everything, place, edgelist=edges, ax=axis, width=0.8, edge_color=MEMBER, alpha=0.6)
        nx.draw_networkx_nodes(everything, **inside, node_size=16, node_color=MEMBER, linewidths=0)
        nx.draw_networkx_nodes(everything, place, nodelist=[node], ax=axis, node_size=42, node_color=OWN, linewidths=0)
        repeat = f" #{token['repeat'] + 1}" if token["level"] else ""
        title = f"level {token['level']}{repeat}\n{len(token['nodes'])} nodes, {len(token['edges'])} edges"
        axis.set_title(title, fontsize=7)
    figure.suptitle(f"Tokens of node {node}, in the order they are scanned", fontsize=10)
    try:
        figure.savefig(file, dpi=150)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot write the picture to {file}: {reason}; choose another --png") from None
    finally:
        plt.close(figure)
