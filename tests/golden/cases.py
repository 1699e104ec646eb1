"""The stores and runs whose bits are kept, as command lines."""

from pathlib import Path

STORES = {
    "grid": ["--dataset", "minesweeper-grid", "--nodes", "400", "--m", "2", "--M", "4", "--s", "2",
             "--ordering", "degree,pagerank,k-core,random", "--rwse", "4", "--lap-pe", "3"],
    "links": ["--dataset", "minesweeper-grid", "--nodes", "400", "--m", "2", "--M", "2", "--s", "1", "--task", "link"],
    "rings": ["--dataset", "skip-ring", "--graphs", "40", "--m", "2", "--M", "2", "--s", "1", "--walk",
              "non-backtracking"],
    "pattern": ["--dataset", "sbm-pattern", "--graphs", "12", "--m", "1", "--M", "3", "--s", "2", "--codec", "zstd"],
    "cycles": ["--dataset", "cycle-count", "--graphs", "30", "--m", "3", "--M", "2", "--s", "1", "--block-size", "64"],
    "edges": ["--dataset", "edges.csv", "--node-table", "nodes.csv", "--m", "2", "--M", "2", "--s", "2"],
}  # fmt: skip

SMALL = ["--epochs", "3", "--seed", "4", "--threads", "1", "--recipe", "none",
         "--set", "model.width=16", "--set", "model.states=4"]  # fmt: skip
SHALLOW = [*SMALL, "--set", "model.node_layers=2"]
WITH_DROPOUT, WITH_SCAN = [*SHALLOW, "--set", "model.dropout=0.1"], [*SHALLOW, "--set", "model.node_scan=true"]

MODELS = (
    "gmn", "gmn-", "gps+mamba", "mpnn", "gmn-one-direction", "gmn-no-mpnn", "gmn-pagerank", "gmn-no-pe",
    "gmn-node-scan", "gmn-input-tokens", "gmn-token-mean", "mlp", "gcn", "gatedgcn", "gin", "gps", "gps-performer",
)  # fmt: skip

RUNS = {
    **{f"model {name}": ("grid", [*SHALLOW, "--model", name]) for name in MODELS},
    "paper": ("edges", [*SMALL, "--model", "gmn-paper"]),
    "full in chunks": ("grid", [*SHALLOW, "--set", "memory_budget=0.0005"]),
    "batch": ("grid", [*SHALLOW, "--mode", "batch", "--set", "batch_nodes=90"]),
    "batch, input tokens": ("grid", [*SHALLOW, "--mode", "batch", "--set", "batch_nodes=90",
                                     "--model", "gmn-input-tokens"]),
    "graphs": ("rings", [*WITH_DROPOUT, "--set", "batch_size=5"]),
    "graphs, nodes": ("pattern", [*WITH_DROPOUT, "--s", "2", "--set", "batch_size=3"]),
    "graphs, regression": ("cycles", [*WITH_DROPOUT, "--set", "batch_size=7", "--set", "model.pool=sum"]),
    "link": ("links", WITH_SCAN),
    "link, batch": ("links", [*WITH_SCAN, "--mode", "batch", "--set", "batch_nodes=90"]),
    "edge features, gatedgcn": ("edges", [*SHALLOW, "--set", "model.mpnn=gatedgcn",
                                          "--set", "model.encoder=gatedgcn"]),
    "edge features, gine": ("edges", [*SHALLOW, "--set", "model.mpnn=gine", "--set", "model.encoder=gine"]),
    "edge features, rwf": ("edges", [*SHALLOW, "--set", "model.encoder=rwf"]),
    "edge features, literal": ("edges", [*SHALLOW, "--set", "model.mpnn=gine", "--set", "model.mpnn_form=literal"]),
    "both ends, near first": ("grid", [*SHALLOW, "--set", "model.readout=both-ends", "--set",
                                       "model.token_order=near-first", "--set", "model.token_dropout=0.1"]),
    "draws": ("grid", [*SHALLOW, "--m", "1", "--s", "1", "--set", "eval_draws=2", "--set", "model.ffn=2"]),
}  # fmt: skip


def write_tables(folder: Path) -> None:
    """edges.csv with features and nodes.csv with labels: a ring with chords."""
    n = 60
    edges = [(i, (i + 1) % n) for i in range(n)] + [(i, (7 * i + 3) % n) for i in range(0, n, 2)]
    lines = ["src,dst,weight,kind", *(f"{a},{b},{(a * 31 + b) % 17 / 17},{(a + b) % 3 / 2}" for a, b in edges)]
    (folder / "edges.csv").write_text("\n".join(lines) + "\n")
    lines = ["id,f0,f1,label", *(f"{i},{i % 5 / 4},{i % 7 / 6},{(i * i) % 3}" for i in range(n))]
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
