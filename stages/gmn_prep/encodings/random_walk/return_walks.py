"""Estimated return probabilities: rows of S^j kept sparse by unbiased sampling.

Row v of S^j, S = D^-1/2 A D^-1/2, is expanded step by step as in `return_rows`, but an entry too small to be worth its
neighbours is passed on as particles of weight tau: points at equal distances tau, with one random offset per step,
along the line of all masses to be passed on. What falls on a neighbour is then right on average. Independent replicas
x, x' of the row give <x_j, x'_j> and <x_j, x'_j+1>, unbiased for P^2j(v, v) and P^(2j+1)(v, v); all pairs of REPLICAS
are averaged, and the spread over replicas gives the standard error.

The spread alone is too small where particles fall in the same way in all replicas: an entry gets n or n+1 of them, and
a neighbour that one replica in ten meets is mostly met by none. So the error also holds what one particle in one
replica would have changed, times a factor: for the first sampled step, whose row before is exact and so few draws go
in, 0.5 (odd powers) and 2 (even), later 0.25 and 0.5. (estimate - truth) / error then has spread 0.4 to 1.2 at every
power on seven scale-free graphs and at hubs of ogbn-arxiv (with the spread alone up to 2.4; |z| = 57 was seen).

In this scaling hubs do no harm: a sampled entry has s <= tau and variance <= s tau, so the variance of a pair is at
most a few tau^2 <s_j, s_j>, which falls with j: the last <s_j, s_j> known exactly sets each node's tau. On
ogbn-arxiv a node takes on the order of 1,000 particle steps; plain returning walks would need p(1-p)/0.005^2, up to
10,000 walks of 16 steps. Nodes whose probabilities are small after the first, exact steps take them from
`return_sketch`.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import child_key, unit_float
from gmn_prep.encodings.random_walk.replica_pairs import pair_mean

REPLICAS = 8
"""Independent replicas of each row. Fewer and finer replicas estimate better; 8 leave 7 degrees of freedom."""
COARSENESS, LARGEST_TAU = 1.25, 0.1
"""A node's tau is COARSENESS * target / sqrt(its last exact even probability), at most LARGEST_TAU."""
PILOT = 4.0
"""The first draw of a node has PILOT times its tau and only tells how fine the draw that counts must be."""
PILOT_SHARE, SHARE = 0.5, 0.25
"""The draw after the pilot (after a later draw) takes the tau at which, by the one before, the largest error is this
share of the target. On ogbn-arxiv the whole takes 1.5 times as long as without a pilot (PILOT_SHARE 0.25: 2.0)."""
PREFIX_SLOTS = 1024
"""A row is expanded exactly, once for all replicas, while a step reads at most this many slots (the first always)."""
ROUNDS = 6
"""Draws that a node may take, the pilot among them."""


@njit(cache=True, nogil=True)
def return_estimates(
    indptr, indices, names, inverse_root, running, sketch, sketch_error, key, target, out, error, lo, hi
):  # type: ignore[no-untyped-def]
    """out[v - lo, j] estimates P^(j+1)(v, v), with standard error error[v - lo, j], for nodes lo .. hi.

    The graph is undirected. out, error: (hi - lo, k). inverse_root: (n,) degree^-1/2. running: (slots,) sums of
    inverse_root over a row's neighbours up to each slot. sketch, sketch_error: (n, k) of
    `return_sketch`. Draws are keyed (names[v], replica + 8 round, step), so a node's result is its own alone.
    A node whose error is above `target` all the same is drawn afresh, finer. Low estimates come with low errors, so
    this choice lowers the mean estimate. The pilot leaves it to a few nodes in 1,000: on the graphs of the tests no
    column's mean is off by more than 3e-5.
    """
    n, k, R = inverse_root.size, out.shape[1], REPLICAS
    place, old_place = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    nodes, values = np.empty(1024, np.int64), np.empty((1024, R))
    grown, sums = np.empty(1024, np.int64), np.empty((1024, R))
    h_odd, h_even, ahead = np.empty((R, R)), np.empty((R, R)), np.empty(R)
    for start in range(lo, hi):
        if indptr[start] == indptr[start + 1]:
            out[start - lo, :] = 1.0  # a walk from an isolated node stays there
            error[start - lo, :] = 0.0
            continue
        tau = LARGEST_TAU
        node_key = child_key(key, np.uint64(names[start]))
        for turn in range(ROUNDS):
            nodes[0], values[0, :], count = start, 1.0, 1
            old_place[start] = 0
            exact, sketched, top = True, False, 0.0
            # Level j is in nodes, values and old_place; level j+1 goes into grown, sums and place.
            for j in range((k + 1) // 2):
                exact = exact and (j == 0 or _slots(indptr, nodes, count) <= PREFIX_SLOTS)
                if not exact and top == 0.0 and turn == 0 and sketch_error[start, 2 * j :].max() <= target:
                    out[start - lo, 2 * j :] = sketch[start, 2 * j :]
                    error[start - lo, 2 * j :] = sketch_error[start, 2 * j :]
                    sketched = True
                    break
                if exact:
                    grown, sums, count_grown = _expand(
                        indptr, indices, inverse_root, nodes, values, count, place, grown, sums
                    )
                    odd, even = _join_exact(values, old_place, grown, sums, count_grown)
                    odd_error, even_error = 0.0, 0.0
                else:
                    first = top == 0.0
                    if first and turn == 0:
                        tau = PILOT * min(LARGEST_TAU, COARSENESS * target / np.sqrt(out[start - lo, 2 * j - 1]))
                    for r in range(R):
                        draw = child_key(child_key(node_key, np.uint64(turn * R + r)), np.uint64(j))
                        ahead[r] = tau * unit_float(draw)
                    grown, sums, count_grown = _expand_sampled(
                        indptr, indices, inverse_root, running, tau, ahead, nodes, values, count, place, grown, sums
                    )
                    _join(values, old_place, grown, sums, count_grown, h_odd, h_even)
                    odd, odd_variance = pair_mean(h_odd)
                    even, even_variance = pair_mean(h_even)
                    top = max(top, _largest(sums, count_grown, tau))
                    odd_unseen, even_unseen = 0.25 * top, 0.5 * top
                    if first:
                        odd_unseen, even_unseen = max(odd_unseen, 0.5 * _largest(values, count, 0.0)), 2.0 * top
                    odd_error = np.sqrt(odd_variance + (odd_unseen * tau / R) ** 2)
                    even_error = np.sqrt(even_variance + (even_unseen * tau / R) ** 2)
                out[start - lo, 2 * j], error[start - lo, 2 * j] = odd, odd_error
                if 2 * j + 1 < k:
                    out[start - lo, 2 * j + 1], error[start - lo, 2 * j + 1] = even, even_error
                for i in range(count):
                    old_place[nodes[i]] = -1
                nodes, grown, values, sums, count = grown, nodes, sums, values, count_grown
                place, old_place = old_place, place
            for i in range(count):
                old_place[nodes[i]] = -1
            worst = error[start - lo, :].max()
            if worst == 0.0 or sketched or (turn > 0 and worst <= target):
                break
            if turn == 0:
                tau = min(tau / PILOT, tau * PILOT_SHARE * target / worst)
            else:
                tau *= SHARE * target / worst


@njit(cache=True, nogil=True)
def _slots(indptr, nodes, count):  # type: ignore[no-untyped-def]
    """Slots of the first `count` nodes."""
    total = 0
    for i in range(count):
        total += indptr[nodes[i] + 1] - indptr[nodes[i]]
    return total


@njit(cache=True, nogil=True)
def _largest(values, count, least):  # type: ignore[no-untyped-def]
    """The largest entry of any replica, at least `least`."""
    largest = least
    for i in range(count):
        for r in range(REPLICAS):
            largest = max(largest, values[i, r])
    return largest


@njit(cache=True, nogil=True)
def _with_room(nodes, values, count, more):  # type: ignore[no-untyped-def]
    """Copies of the lists, with room for `more` entries after `count`."""
    size = 2 * (count + more)
    new_nodes, new_values = np.empty(size, nodes.dtype), np.empty((size, values.shape[1]), values.dtype)
    new_nodes[:count], new_values[:count] = nodes[:count], values[:count]
    return new_nodes, new_values


@njit(inline="always")
def _entry(v, place, grown, sums, count_grown):  # type: ignore[no-untyped-def]
    """Node v's entry in the new level, made with zeros if it is not there; returns it and the count of entries."""
    if place[v] < 0:
        place[v] = count_grown
        grown[count_grown] = v
        for r in range(REPLICAS):
            sums[count_grown, r] = 0.0
        count_grown += 1
    return place[v], count_grown


@njit(cache=True, nogil=True)
def _expand(indptr, indices, inverse_root, nodes, values, count, place, grown, sums):  # type: ignore[no-untyped-def]
    """The next level, exactly, the same for all replicas."""
    count_grown = 0
    for i in range(count):
        u = nodes[i]
        first, last = indptr[u], indptr[u + 1]
        if count_grown + last - first > grown.size:
            grown, sums = _with_room(grown, sums, count_grown, last - first)
        push = values[i, 0] * inverse_root[u]
        for slot in range(first, last):
            at, count_grown = _entry(indices[slot], place, grown, sums, count_grown)
            sums[at, 0] += push
    for i in range(count_grown):
        value = sums[i, 0] * inverse_root[grown[i]]
        for r in range(REPLICAS):
            sums[i, r] = value
    return grown, sums, count_grown


@njit(cache=True, nogil=True)
def _expand_sampled(indptr, indices, inverse_root, running, tau, ahead, nodes, values, count, place, grown, sums):  # type: ignore[no-untyped-def]
    """The next level of every replica; ahead[r] is the distance to replica r's next sampling point."""
    count_grown = 0
    for i in range(count):
        u = nodes[i]
        first, last = indptr[u], indptr[u + 1]
        if count_grown + last - first > grown.size:
            grown, sums = _with_room(grown, sums, count_grown, last - first)
        for r in range(REPLICAS):
            if values[i, r] == 0.0:
                continue
            push = values[i, r] * inverse_root[u]
            mass = push * running[last - 1]
            if 2 * mass >= tau * (last - first):  # as many points as half the neighbours: take all of them
                for slot in range(first, last):
                    at, count_grown = _entry(indices[slot], place, grown, sums, count_grown)
                    sums[at, r] += push * inverse_root[indices[slot]]
                continue
            slot = first
            while ahead[r] < mass:
                slot = _find_slot(running, slot, last, ahead[r] / push)
                at, count_grown = _entry(indices[slot], place, grown, sums, count_grown)
                sums[at, r] += tau
                ahead[r] += tau
            ahead[r] -= mass
    return grown, sums, count_grown


@njit(cache=True, nogil=True)
def _find_slot(running, first, last, goal):  # type: ignore[no-untyped-def]
    """The first slot of first .. last whose running sum exceeds `goal`, or the last slot."""
    last -= 1
    while first < last:
        middle = (first + last) // 2
        if running[middle] > goal:
            last = middle
        else:
            first = middle + 1
    return first


@njit(cache=True, nogil=True)
def _join_exact(values, old_place, grown, sums, count_grown):  # type: ignore[no-untyped-def]
    """<s_j, s_j+1> and <s_j+1, s_j+1>."""
    odd, even = 0.0, 0.0
    for i in range(count_grown):
        even += sums[i, 0] * sums[i, 0]
        if old_place[grown[i]] >= 0:
            odd += values[old_place[grown[i]], 0] * sums[i, 0]
    return odd, even


@njit(cache=True, nogil=True)
def _join(values, old_place, grown, sums, count_grown, h_odd, h_even):  # type: ignore[no-untyped-def]
    """h_odd[r, s] = <x_j of r, x_j+1 of s>; h_even the same within level j+1, its sum over r, s and s, r at r > s.

    Most entries were met by one replica only: joining just those that met took a seventh off the whole estimate.
    """
    met = np.empty(REPLICAS, np.int64)
    h_odd[:, :] = 0.0
    h_even[:, :] = 0.0
    for i in range(count_grown):
        count = 0
        for r in range(REPLICAS):
            if sums[i, r] != 0.0:
                met[count] = r
                count += 1
        before = old_place[grown[i]]
        for a in range(count):
            r = met[a]
            for b in range(a):
                h_even[r, met[b]] += 2.0 * sums[i, r] * sums[i, met[b]]
            if before >= 0:
                for s in range(REPLICAS):
                    h_odd[s, r] += values[before, s] * sums[i, r]
