"""Small graphs of the kinds that public datasets of many graphs hold."""

import numpy as np

from tests.prep.datasets.public.many_graph_samples import both_ways

COCO_LABELS = {0: 0, 1: 1, 11: 11, 13: 12, 90: 80}
"""Some of COCO's ids, which have gaps, and their classes."""
MALNET = {
    "train": {
        "trojan/a/G1": [(0, 2), (2, 5), (5, 0), (5, 2), (7, 7)],  # 1, 3, 4, 6 do not occur; 7 is linked to itself only
        "adware/a/G2": [(0, 1), (1, 1)],
        "benign/a/G3": [(3, 1)],
    },
    "val": {"adware/b/G4": [(0, 1), (0, 2), (0, 3)]},
    "test": {"downloader/a/G5": [(0, 1)], "addisplay/a/G6": [(1, 0), (2, 0)]},
}
"""Edge lists by part and name."""


def molecule(rng, n):
    edges = both_ways(rng, n)
    return {
        "x": rng.integers(0, 2, (n, 9)),
        "edge_index": edges,
        "edge_attr": np.stack(
            [edges.sum(axis=0) % 5, edges.prod(axis=0) % 6, edges.max(axis=0, initial=0) % 2], axis=1
        ),
    }


def peptide(classes, rng, n):
    y = rng.integers(0, 2, (1, classes)) if classes == 10 else rng.normal(size=(1, classes))
    return molecule(rng, n) | {"y": y.astype(np.float32)}


def contact(rng, n):
    pairs = rng.integers(0, n, (2, n // 2))
    return molecule(rng, n) | {"edge_label_index": pairs, "edge_label": rng.integers(0, 2, n // 2)}


def segments(labels, rng, n):
    edges = both_ways(rng, n)
    return {
        "x": rng.normal(100, 30, (n, 14)),
        "edge_index": edges,
        "edge_attr": rng.normal(5, 2, (edges.shape[1], 2)),
        "y": rng.choice(labels, n),
    }


def pixels(colours, rng, n):
    """Each node's next ones around the ring, in one direction only, with a weight."""
    edges = both_ways(rng, n)[:, :n]
    return {
        "x": rng.random((n, colours), dtype=np.float32),
        "pos": rng.random((n, 2), dtype=np.float32),
        "edge_index": edges,
        "edge_attr": rng.random(edges.shape[1], dtype=np.float32),
        "y": rng.integers(0, 10, 1),
    }


def pattern(rng, n):
    return {
        "x": np.eye(3, dtype=np.float32)[rng.integers(0, 3, n)],
        "edge_index": both_ways(rng, n),
        "y": rng.integers(0, 2, n),
    }
