"""Makes small real stores on disk for tests."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gmn_pipeline import Graph, StoreWriter, Task, TokenSettings, TokenStore
from gmn_pipeline.place import StorePlace
from gmn_pipeline.store.format.words import Codec
from gmn_pipeline.store.writing.writer import plan_manifest
from gmn_prep.orderings import compute_ordering
from gmn_prep.tokens.tokenizer import Tokenizer

Encodings = dict[str, tuple[dict[str, Any], dict[str, np.ndarray]]]


def ring_graph(n: int = 40, chords: int = 30, *, edge_features: bool = False) -> Graph:
    """A ring with chords: connected, uneven degrees, features, labels and two splits."""
    rng = np.random.default_rng(7)
    edges = np.concatenate([np.stack([np.arange(n), (np.arange(n) + 1) % n], 1), rng.integers(0, n, (chords, 2))])
    return Graph.from_edges(
        edges,
        n,
        edge_attr=rng.normal(size=(len(edges), 3)) if edge_features else None,
        x=rng.normal(size=(n, 5)).astype(np.float32),
        y=rng.integers(0, 3, n),
        splits=rng.integers(1, 4, (2, n)),
        task=Task.of("node", "multiclass", 3),
    )


def write_store(
    path: StorePlace,
    graph: Graph,
    settings: TokenSettings,
    *,
    block_size: int = 16,
    codec: Codec = "raw",
    orderings: tuple[str, ...] = ("degree",),
    encodings: Encodings | None = None,
    dataset: str | None = None,
    threads: int = 1,
) -> TokenStore:
    """A finished store of `graph` at `path`, written the way the command writes it.

    encodings: by name, the settings and the arrays.
    """
    encodings = encodings or {}
    manifest = plan_manifest(
        graph, settings, block_size=block_size, codec=codec, orderings={name: {"seed": 0} for name in orderings},
        encodings={name: settings_of for name, (settings_of, _) in encodings.items()},
        dataset={"dataset": dataset} if dataset else None,
    )  # fmt: skip
    tokenizer = Tokenizer.of(graph, settings)
    with ThreadPoolExecutor(threads) as pool, StoreWriter.open(path, manifest, graph) as writer:
        for name, (_, arrays) in encodings.items():
            writer.write_group(f"encodings/{name}", arrays)
        for name in orderings:
            writer.write_group(f"orderings/{name}", vars(compute_ordering(graph, name, seed=0)))
        for number in writer.missing_blocks():
            first, last = writer.block_ptr[number : number + 2]
            writer.write_block(number, tokenizer.block(int(first), int(last), pool))
        writer.finalise()
    return TokenStore.open(path)
