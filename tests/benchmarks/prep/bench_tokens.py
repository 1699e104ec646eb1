"""Walks against torch_cluster, induced subgraphs against scipy slicing."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import csr_array

from gmn_pipeline import TokenSettings
from gmn_pipeline.console.machine import usable_cores
from gmn_pipeline.counter_random import Purpose, root_key
from gmn_prep.tokens.tokenizer import Tokenizer
from gmn_prep.tokens.walks import UNIFORM, sample_walks
from tests.benchmarks.arxiv import arxiv_graph
from tests.benchmarks.timing import Row, best_seconds, side_by_side

SETTINGS = TokenSettings(8, 4, 2)
SCIPY_TOKENS = 2000


def walk_row() -> Row:
    name, graph = arxiv_graph()
    threads, n, t = usable_cores(), graph.num_nodes, SETTINGS
    out = np.empty((n, t.walk_entries), dtype=np.int64)
    root = root_key(0, Purpose.WALK)

    def run(first: int) -> None:
        last = min(first + 2048, n)
        sample_walks(graph.indptr, graph.indices, root, UNIFORM, first, last, t.m, t.M, t.s, out[first:last])

    with ThreadPoolExecutor(threads) as pool:

        def ours() -> None:
            list(pool.map(run, range(0, n, 2048)))

        work = f"{out.size / 1e6:.1f}M walk steps, {name}, 8/4/2"
        try:
            import torch
            import torch_cluster
        except ImportError:
            return Row(work, "sample_walks", "torch_cluster (not installed)", best_seconds(ours), float("nan"))
        torch.set_num_threads(threads)
        row, col = (
            torch.from_numpy(graph.slot_sources.astype(np.int64)),
            torch.from_numpy(graph.indices.astype(np.int64)),
        )
        starts = torch.arange(n).repeat_interleave(t.M * t.s)

        def peer() -> None:
            for level in range(1, t.m + 1):
                torch_cluster.random_walk(row, col, starts, level)

        seconds = side_by_side(ours, peer)
    return Row(work, f"sample_walks, {threads} threads", f"torch_cluster.random_walk, {threads} threads", *seconds)


def subgraph_row() -> Row:
    """Ours does all tokens; scipy a sample spread over the graph, scaled up."""
    name, graph = arxiv_graph()
    n, threads = graph.num_nodes, usable_cores()
    with ThreadPoolExecutor(threads) as pool:

        def ours() -> None:
            tokenizer = Tokenizer.of(graph, SETTINGS)
            for first in range(0, n, 16384):
                tokenizer.block(first, min(first + 16384, n), pool)

        ours_seconds = best_seconds(ours)
        sampled = Tokenizer.of(graph, SETTINGS)
        blocks = [sampled.block(int(v), int(v) + 1, pool) for v in np.linspace(0, n - 1, SCIPY_TOKENS // 17)]
    tokens = [b.nodes[b.node_ptr[i] : b.node_ptr[i + 1]] for b in blocks for i in range(len(b.node_ptr) - 1)]
    matrix = csr_array((np.ones(graph.num_slots, np.int8), graph.indices, graph.indptr), shape=(n, n))
    begun = time.perf_counter()
    for nodes in tokens:
        matrix[nodes][:, nodes]
    peer_seconds = (time.perf_counter() - begun) / len(tokens) * n * SETTINGS.sequence_length
    work = f"walks, unions and {n * SETTINGS.sequence_length / 1e6:.1f}M induced subgraphs, {name}"
    return Row(work, f"Tokenizer, {threads} threads", "scipy A[S][:, S] alone, scaled up", ours_seconds, peer_seconds)


def rows() -> list[Row]:
    return [walk_row(), subgraph_row()]


if __name__ == "__main__":
    print(*rows(), sep="\n")
