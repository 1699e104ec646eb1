"""Small datasets of many graphs as their authors publish them, and what loading them must give."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from gmn_pipeline.graph import Graph
from gmn_prep.datasets.public.raw.quiet_loader import quiet_loader

with quiet_loader(downloading=False):
    import torch

PARTS = ("train", "val", "test")
Item = dict[str, np.ndarray]
"""One graph: x, edge_index (2, E), edge_attr, y, and what else its dataset has."""


def draw_items(make: Any, counts: tuple[int, ...] = (4, 2, 3), seed: int = 0) -> dict[str, list[Item]]:
    """`make(rng, nodes)` for each graph of each part; a graph of one node without edges among them."""
    rng = np.random.default_rng(seed)
    sizes = {part: rng.integers(2, 9, count) for part, count in zip(PARTS, counts, strict=True)}
    sizes["train"][1] = 1
    return {part: [make(rng, int(n)) for n in sizes[part]] for part in PARTS}


def both_ways(rng: np.random.Generator, n: int) -> np.ndarray:
    """Edges of a ring of n nodes, (2, E), there and back, in no order."""
    there = np.array([(v, (v + 1) % n) for v in range(n if n > 2 else n - 1)], dtype=np.int64).reshape(-1, 2)
    edges = np.concatenate([there, there[:, ::-1]])
    return rng.permutation(edges).T.copy()


def expected_graph(items: dict[str, list[Item]], task: Any, **options: Any) -> Graph:
    """The union of all graphs, made one by one; `x` and `y` of the items as they are."""
    flat = [(code, item) for code, part in enumerate(PARTS, 1) for item in items[part]]
    sizes = [len(item["x"]) for _, item in flat]
    start = np.concatenate([[0], np.cumsum(sizes)])
    edges = np.concatenate([item["edge_index"].T + first for (_, item), first in zip(flat, start, strict=False)])
    repeats = {"graph": [1] * len(flat), "node": sizes, "link": [len(item.get("edge_label", ())) for _, item in flat]}
    label = "edge_label" if task.item == "link" else "y"
    if task.item == "link":
        options["pairs"] = np.concatenate(
            [item["edge_label_index"].T + first for (_, item), first in zip(flat, start, strict=False)]
        )
    if "edge_attr" in flat[0][1]:
        options["edge_attr"] = np.concatenate([item["edge_attr"] for _, item in flat])
    return Graph.from_edges(
        edges,
        int(start[-1]),
        x=np.concatenate([item["x"] for _, item in flat]),
        y=np.concatenate([item[label] for _, item in flat]),
        graph_ptr=start,
        splits=np.repeat([code for code, _ in flat], repeats[task.item]),
        task=task,
        **options,
    )


def write_lrgb(root: Path, name: str, items: dict[str, list[Item]]) -> Path:
    """Lists of tuples: pickled for superpixels, whose labels are plain lists, and saved by torch for molecules."""
    folder = root / "lrgb" / name / "raw"
    folder.mkdir(parents=True)
    order = ("x", "edge_attr", "edge_index", "y")
    if name == "pcqm-contact":
        order = ("x", "edge_attr", "edge_index", "edge_label_index", "edge_label")
    for part, graphs in items.items():
        rows = [tuple(torch.from_numpy(item[key]) for key in order) for item in graphs]
        if name.endswith("-sp"):
            with (folder / f"{part}.pickle").open("wb") as file:
                pickle.dump([(*row[:3], row[3].tolist()) for row in rows], file)
        else:
            torch.save(rows, folder / f"{part}.pt")
    return folder


def write_gnn_benchmark(root: Path, name: str, items: dict[str, list[Item]]) -> Path:
    """One list of dicts of tensors per part."""
    path = root / "gnn-benchmark" / name / "raw" / f"{name}_v2.pt"
    path.parent.mkdir(parents=True)
    torch.save(
        [[{key: torch.from_numpy(value) for key, value in item.items()} for item in items[part]] for part in PARTS],
        path,
    )
    return path


def write_malnet(root: Path, graphs: dict[str, dict[str, list[tuple[int, int]]]]) -> Path:
    """`graphs[part][type/family/name]` are edges; an edge list has five lines of comment before them."""
    folder = root / "malnet-tiny/raw"
    for part, named in graphs.items():
        listing = folder / f"split_info_tiny/type/{part}.txt"
        listing.parent.mkdir(parents=True, exist_ok=True)
        listing.write_text("".join(f"{name}\n" for name in named))
        for name, edges in named.items():
            path = folder / f"malnet-graphs-tiny/{name}.edgelist"
            path.parent.mkdir(parents=True, exist_ok=True)
            head = "# Directed graph\n# A function call graph\n#\n# Nodes and edges\n# FromNodeId\tToNodeId\n"
            path.write_text(head + "".join(f"{a}\t{b}\n" for a, b in edges))
    return folder
