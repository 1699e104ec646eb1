"""`mrr`, the mean reciprocal rank of a link task: how high a true partner stands among all the others.

Each positive pair (u, v) of a part is ranked by score among the pairs (u, v') for all nodes v' of its graph, without u
itself and without every other partner of u: a node that a positive pair, of whatever part and in whichever order, links
to u. Equal scores share the mean of their ranks. Of a graph with more than MOST_CANDIDATES nodes, that many are drawn
for each pair, with replacement, the same in every run and epoch.

Candidate pairs exist for a slab of positives at a time; memory is that of one slab and of the node states.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numba import njit
from torch import Tensor

from gmn_pipeline.counter_random import Purpose, bounded, child_key, root_key
from gmn_pipeline.graph import Graph
from gmn_pipeline.types import Array, FloatArray, IntArray
from gmn_train.data.inputs.rows import concatenate_ranges
from gmn_train.data.samplers import Sampler
from gmn_train.learning.predictions import draw_epochs
from gmn_train.machine.compute import Compute
from gmn_train.model.frame import GraphModel

MOST_CANDIDATES = 1000
PAIRS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class NodeStates:
    """States of some nodes, one tensor for each draw of repeats."""

    ids: IntArray
    """(B,) ascending."""
    draws: Sequence[Tensor]
    """(B, d) each."""

    def score(self, model: GraphModel, pairs: IntArray) -> FloatArray:
        """Scores of pairs (K, 2) of node ids, averaged over the draws: (K,)."""
        rows = torch.from_numpy(np.searchsorted(self.ids, pairs)).to(self.draws[0].device)
        total = sum(model.head(h, rows)[:, 0].float() for h in self.draws)
        assert isinstance(total, Tensor)
        return (total / len(self.draws)).cpu().numpy()


@torch.inference_mode()
def rank_parts(sampler: Sampler, model: GraphModel, compute: Compute, parts: Sequence[str]) -> dict[str, float]:
    """The mean reciprocal rank of each part; NaN where it has no positive pair."""
    data, graph = sampler.data, sampler.data.graph
    assert graph.pairs is not None
    assert graph.y is not None
    wanted = {part: data.items[part][graph.y[data.items[part]] == 1] for part in parts}
    reciprocals: dict[str, list[FloatArray]] = {part: [] for part in parts}
    known = positive_codes(graph)
    model.eval()
    with compute.autocast():
        for states in node_states(sampler, model, compute, np.concatenate(list(wanted.values()))):
            for part, items in wanted.items():
                here = items[np.isin(graph.pairs[items, 0], states.ids)]
                reciprocals[part].append(1 / rank_pairs(states, model, graph, data.source.graph_ptr, here, known))
    joined = {part: np.concatenate([np.zeros(0), *values]) for part, values in reciprocals.items()}
    return {part: float(values.mean()) if len(values) else float("nan") for part, values in joined.items()}


def node_states(sampler: Sampler, model: GraphModel, compute: Compute, items: IntArray):
    """NodeStates that each hold both ends and all candidates of some of `items`, and together of all.

    Where a graph is read in batches of nodes, a node's state comes from its batch, as in training; all states are
    kept, (n, width).
    """
    epochs = draw_epochs(sampler.config.eval_draws)
    for steps in sampler.node_steps(items):
        ids: list[IntArray] = []
        draws: list[list[Tensor]] = [[] for _ in epochs]
        for step in steps:
            for states, epoch in zip(draws, epochs, strict=True):
                inputs = sampler.load_nodes(step, epoch)
                states.append(model(compute.move(inputs)).embeddings)
            ids.append(inputs.node_ids[: inputs.targets].numpy())
        yield NodeStates(np.concatenate(ids), [torch.cat(states) for states in draws])


def rank_pairs(
    states: NodeStates, model: GraphModel, graph: Graph, graph_ptr: IntArray, items: IntArray, known: IntArray
) -> FloatArray:
    """(items,) the rank of each positive pair, from 1; see the module."""
    assert graph.pairs is not None
    of_graph = np.searchsorted(graph_ptr, graph.pairs[items, 0], side="right") - 1
    sizes = np.diff(graph_ptr)[of_graph]
    slab_of = np.cumsum(np.minimum(sizes, MOST_CANDIDATES) + 1) // PAIRS_AT_ONCE
    ranks = [np.zeros(0)]
    for slab in np.split(np.arange(len(items)), np.flatnonzero(np.diff(slab_of)) + 1):
        pairs = graph.pairs[items[slab]].astype(np.int64)  # (k, 2)
        owner, candidates = candidate_nodes(items[slab], graph_ptr[of_graph[slab]], sizes[slab])
        tried = np.stack([pairs[owner, 0], candidates], 1)
        keep = (tried[:, 0] != tried[:, 1]) & ~is_among(pair_codes(tried, graph.num_nodes), known)
        owner, tried = owner[keep], tried[keep]
        scores = states.score(model, np.concatenate([pairs, tried]))
        own, others = scores[: len(pairs)], scores[len(pairs) :]
        above = np.bincount(owner, others > own[owner], minlength=len(pairs))
        beside = np.bincount(owner, others == own[owner], minlength=len(pairs))
        ranks.append(1 + above + beside / 2)
    return np.concatenate(ranks)


def candidate_nodes(items: IntArray, firsts: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """(whose (C,), node (C,)): the nodes each item's partner is ranked among, before filtering."""
    counts = np.minimum(sizes, MOST_CANDIDATES)
    owner = np.repeat(np.arange(len(items)), counts)
    nodes = concatenate_ranges(firsts.astype(np.int64), counts.astype(np.int64))
    large = sizes > MOST_CANDIDATES
    if large.any():
        drawn = np.empty((int(large.sum()), MOST_CANDIDATES), np.int64)
        fill_drawn_nodes(
            root_key(0, Purpose.CANDIDATES), items[large].astype(np.int64), firsts[large], sizes[large], drawn
        )
        nodes[large[owner]] = drawn.reshape(-1)
    return owner, nodes


@njit(cache=True, nogil=True)
def fill_drawn_nodes(root, items, firsts, sizes, out):
    """out[i, j] = draw j of items[i] among firsts[i] .. firsts[i] + sizes[i]."""
    for i in range(items.size):
        key = child_key(root, np.uint64(items[i]))
        for j in range(out.shape[1]):
            out[i, j] = firsts[i] + np.int64(bounded(child_key(key, np.uint64(j)), np.uint64(sizes[i])))


def positive_codes(graph: Graph) -> IntArray:
    """Ascending codes of all positive pairs of the dataset, in both orders."""
    assert graph.pairs is not None
    assert graph.y is not None
    pairs = graph.pairs[np.asarray(graph.y) == 1].astype(np.int64)
    return np.unique(pair_codes(np.concatenate([pairs, pairs[:, ::-1]]), graph.num_nodes))


def pair_codes(pairs: IntArray, nodes: int) -> IntArray:
    codes: IntArray = pairs[:, 0] * nodes + pairs[:, 1]
    return codes


def is_among(values: IntArray, ascending: IntArray) -> Array:
    """Which values are in a sorted array."""
    if len(ascending) == 0:
        return np.zeros(len(values), bool)
    return ascending[np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)] == values
