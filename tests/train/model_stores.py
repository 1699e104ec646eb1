"""Token chunks and stores for the model's tests, with any encodings."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from gmn_pipeline import Graph, StoreWriter, TokenBatch, TokenSettings, TokenStore
from gmn_pipeline.store.writer import plan_manifest
from gmn_prep.orderings import compute_ordering
from gmn_prep.tokens.tokenizer import Tokenizer
from gmn_train.model.token_chunks import TokenChunk


def token_chunk(graph: Graph, settings: TokenSettings) -> TokenChunk:
    """The tokens of all nodes, without a store in between."""
    with ThreadPoolExecutor(1) as pool:
        b = Tokenizer.of(graph, settings).block(0, graph.num_nodes, pool)
    batch = TokenBatch(
        settings, np.arange(graph.num_nodes), b.nodes, b.node_ptr, b.edges, b.edge_ptr, b.edge_slots, b.walks
    )
    return TokenChunk.of(batch, b.nodes, b.edge_slots, rows=graph.num_nodes, directed=graph.directed)


def model_store(
    path: Path,
    graph: Graph,
    settings: TokenSettings,
    *,
    laplacian: int = 0,
    random_walk: int = 0,
    orderings: tuple[str, ...] = (),
    seed: int = 0,
    block_size: int = 16,
) -> TokenStore:
    """A finished store, with random numbers for encodings."""
    rng = np.random.default_rng(seed)
    n, arrays, encodings = graph.num_nodes, {}, {}
    if laplacian:
        per_graph = rng.random((graph.num_graphs, laplacian)).astype(np.float32)
        vectors = rng.normal(size=(n, laplacian)).astype(np.float32)
        arrays["laplacian"] = {"vectors": vectors, "values": per_graph, "residuals": per_graph}
        encodings["laplacian"] = {"k": laplacian}
    if random_walk:
        arrays["random_walk"] = {"values": rng.random((n, random_walk)).astype(np.float32)}
        encodings["random_walk"] = {"k": random_walk, "mode": "exact"}
    manifest = plan_manifest(
        graph, settings, block_size=block_size, encodings=encodings, orderings={name: {"seed": 0} for name in orderings}
    )
    tokenizer = Tokenizer.of(graph, settings)
    with ThreadPoolExecutor(1) as pool, StoreWriter.open(path, manifest, graph) as writer:
        for name, values in arrays.items():
            writer.write_group(f"encodings/{name}", values)
        for name in orderings:
            writer.write_group(f"orderings/{name}", vars(compute_ordering(graph, name, seed=0)))
        for number in writer.missing_blocks():
            first, last = writer.block_ptr[number : number + 2]
            writer.write_block(number, tokenizer.block(int(first), int(last), pool))
        writer.finalise()
    return TokenStore.open(path)
