"""Slow twins of the encodings: dense matrices, as written in the books."""

from itertools import pairwise

import numpy as np

from gmn_pipeline import Graph
from gmn_pipeline.counter_random import Purpose
from tests.reference.counter_random import draw


def dense_adjacency(graph: Graph) -> np.ndarray:
    """(n, n) number of slots from row to column."""
    out = np.zeros((graph.num_nodes, graph.num_nodes))
    np.add.at(out, (graph.slot_sources, graph.indices), 1.0)
    return out


def dense_laplacian(graph: Graph) -> np.ndarray:
    """(n, n) I - D^-1/2 A D^-1/2 of the undirected graph, with 0^-1/2 = 0."""
    adjacency = dense_adjacency(graph)
    if graph.directed:
        adjacency = ((adjacency + adjacency.T) > 0).astype(float)
    degree = adjacency.sum(axis=1)
    scale = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0.0)
    return np.eye(len(adjacency)) - scale[:, None] * adjacency * scale


def dense_return_probabilities(graph: Graph, k: int) -> np.ndarray:
    """(n, k) diagonals of P, P^2, .. P^k; a node without neighbours stays."""
    step = dense_adjacency(graph)
    step[step.sum(axis=1) == 0] = np.eye(graph.num_nodes)[step.sum(axis=1) == 0]
    step /= step.sum(axis=1, keepdims=True)
    power, out = np.eye(graph.num_nodes), []
    for _ in range(k):
        power = power @ step
        out.append(np.diag(power))
    return np.stack(out, axis=1)


def dense_return_sketch(graph: Graph, k: int, seed: int, blocks: range) -> tuple[np.ndarray, np.ndarray]:
    """(n, k) means of (S^i z)(v) (S^j z)(v), i + j = 1 .. k, over 16 sign vectors z per block, and their errors."""
    step = np.eye(graph.num_nodes) - dense_laplacian(graph)
    bits = [[draw(seed, Purpose.RETURN_SIGNS, block, v) for block in blocks] for v in range(graph.num_nodes)]
    signs = np.array([[1.0 if word >> c & 1 else -1.0 for word in row for c in range(16)] for row in bits])
    walked = [signs.reshape(graph.num_nodes, 16 * len(blocks))]
    for _ in range((k + 1) // 2):
        walked.append(step @ walked[-1])
    products = np.stack([walked[t // 2] * walked[(t + 1) // 2] for t in range(1, k + 1)], 1)
    return products.mean(2), products.std(2, ddof=1) / np.sqrt(products.shape[2])


def graph_ranges(graph: Graph) -> list[tuple[int, int]]:
    """First and last+1 node of each graph."""
    pointer = [0, graph.num_nodes] if graph.graph_ptr is None else graph.graph_ptr.tolist()
    return list(pairwise(pointer))
