"""Token chunks and stores for the model's tests, with any encodings."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from gmn_pipeline import Graph, TokenBatch, TokenSettings, TokenStore
from gmn_prep.tokens.tokenizer import Tokenizer
from gmn_train.data.token_chunks import TokenChunk
from tests.stores import write_store


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
    dataset: str | None = None,
) -> TokenStore:
    """A finished store, with random numbers for encodings."""
    rng = np.random.default_rng(seed)
    n, encodings = graph.num_nodes, {}
    if laplacian:
        per_graph = rng.random((graph.num_graphs, laplacian)).astype(np.float32)
        vectors = rng.normal(size=(n, laplacian)).astype(np.float32)
        arrays = {"vectors": vectors, "values": per_graph, "residuals": per_graph}
        encodings["laplacian"] = ({"k": laplacian}, arrays)
    if random_walk:
        arrays = {"values": rng.random((n, random_walk)).astype(np.float32)}
        encodings["random_walk"] = ({"k": random_walk, "mode": "exact"}, arrays)
    return write_store(
        path, graph, settings, block_size=block_size, orderings=orderings, encodings=encodings, dataset=dataset
    )
