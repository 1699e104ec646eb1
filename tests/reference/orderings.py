"""Slow twins of the orderings' scores: networkx and dense eigenvectors, one graph at a time."""

import networkx as nx
import numpy as np

from gmn_pipeline import Graph
from tests.reference.encodings import dense_adjacency, graph_ranges


def degree_scores(graph: Graph) -> np.ndarray:
    return dense_adjacency(graph).sum(axis=1)


def pagerank_scores(graph: Graph) -> np.ndarray:
    adjacency, out = dense_adjacency(graph), np.zeros(graph.num_nodes)
    for lo, hi in graph_ranges(graph):
        if hi > lo:
            network = nx.from_numpy_array(adjacency[lo:hi, lo:hi], create_using=nx.DiGraph)
            out[lo:hi] = list(nx.pagerank(network, alpha=0.85, tol=1e-14, max_iter=5000).values())
    return out


def k_core_scores(graph: Graph) -> np.ndarray:
    adjacency = dense_adjacency(graph)
    simple = (adjacency + adjacency.T) > 0
    np.fill_diagonal(simple, False)
    cores = nx.core_number(nx.from_numpy_array(simple.astype(int)))
    return np.array([cores[v] for v in range(graph.num_nodes)], dtype=float)


def eigenvector_scores(graph: Graph) -> np.ndarray:
    """Per component: the leading eigenvector, mean square 1, times its eigenvalue."""
    adjacency = dense_adjacency(graph)
    if graph.directed:
        adjacency = ((adjacency + adjacency.T) > 0).astype(float)
    out = np.zeros(graph.num_nodes)
    for members in nx.connected_components(nx.from_numpy_array(adjacency)):
        nodes = sorted(members)
        values, vectors = np.linalg.eigh(adjacency[np.ix_(nodes, nodes)])
        out[nodes] = np.abs(vectors[:, -1]) * np.sqrt(len(nodes)) * max(values[-1], 0.0)
    return out


def fiedler_places(graph: Graph) -> np.ndarray:
    """Of a connected graph: the second right eigenvector of D^-1 A, from 0 to 1. Its mirror image is as good."""
    adjacency = dense_adjacency(graph)
    values, vectors = np.linalg.eig(adjacency / adjacency.sum(1, keepdims=True))
    second = vectors[:, np.argsort(values.real)[-2]].real
    return (second - second.min()) / np.ptp(second)
