"""The kernel of stage one: all tokens of a range of nodes.

For each node it takes all walks (`walks.py`), numbers the distinct nodes they visit (the node's *reach*), finds the
links among those once (`reach.py`), and then reads every token's nodes and induced edges out of that shared picture: a
token never searches the graph.
"""

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import child_key
from gmn_prep.tokens.reach import Links, link_reach, longer, new_reach, number_reach
from gmn_prep.tokens.walks import draw_walk_keys, walk_from, walk_offsets


@njit(cache=True, nogil=True)
def _sort_hits(hits, count, shift, size, start, fill, ordered):
    """Sort hits[:count] into `ordered`; start[b], b in 0..size, becomes the number of hits with `hit >> shift` below b.

    A counting sort by the top bits, then insertion within buckets, which hold one or two hits on average.
    """
    for b in range(size + 1):
        start[b] = 0
    for h in range(count):
        start[(hits[h] >> shift) + 1] += 1
    for b in range(size):
        start[b + 1] += start[b]
        fill[b] = start[b]
    for h in range(count):
        hit = hits[h]
        b = hit >> shift
        at = fill[b]
        while at > start[b] and ordered[at - 1] > hit:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = hit
        fill[b] += 1


@njit(inline="always")
def _emit(edges, slots, at, source, target, slot):
    edges[at, 0] = source
    edges[at, 1] = target
    if slots.shape[0] > 0:
        slots[at, 0] = slot
    return at + 1


@njit(cache=True, nogil=True)
def tokenize_range(
    indptr, indices, pair_ptr, pair_other, pair_out, pair_back, root, law, directed, keep_slots,
    first, last, m, M, s, given, walks, sizes, edge_sizes, node_count, edge_count,
):  # fmt: skip
    """Tokens of nodes first..last-1, B in all.

    pair_out and pair_back may be empty for an undirected graph unless keep_slots. given: (B, W) the walks as node ids,
    if they were taken before, else (0, 0).
    Fills walks (B, W), sizes and edge_sizes (B*L, M), node_count and edge_count (B*L,); returns (nodes (N,),
    edges (E, 2), slots (E, 1 directed or 2)), slots empty unless keep_slots.
    """
    entries, length, most = walks.shape[1], 1 + m * s, 1 + M * m
    offsets = walk_offsets(m, M, s)
    keys = np.empty(offsets.size, np.uint64)
    here, before = np.empty(offsets.size, np.int64), np.empty(offsets.size, np.int64)
    steps = np.empty(entries, np.int64)
    reach = new_reach(entries, indices)
    links = Links(np.empty(2 + entries, np.int64), np.empty(1024, np.int32), np.empty(1024, np.int64))

    # The token at hand: its places in first-visit order; of each place, the token it was last seen in and its index.
    members, seen_in = np.empty(most, np.int32), np.full(1 + entries, -1, np.int64)
    local = np.zeros(1 + entries, np.int64)
    # A hit is a link between two members, packed to sort by (later index, earlier index):
    # later | earlier | 31 bits: which link | 1 bit: whether the earlier one keeps the pair.
    index_bits = 1
    while (1 << index_bits) < most:
        index_bits += 1
    later_shift, earlier_mask = 32 + index_bits, (1 << index_bits) - 1
    hits, ordered = np.empty(1024, np.int64), np.empty(1024, np.int64)
    start, fill, edges_upto = (
        np.empty(most + 1, np.int64),
        np.empty(most + 1, np.int64),
        np.empty(most + 1, np.int64),
    )

    nodes = np.empty((last - first) * (1 + s * m + entries), indices.dtype)
    edges = np.empty((max(64, nodes.size), 2), walks.dtype)
    slots = np.empty((edges.shape[0] if keep_slots else 0, 1 if directed else 2), pair_out.dtype)
    n_nodes, n_edges, token = 0, 0, 0

    for v in range(first, last):
        if given.shape[0] > 0:
            steps[:] = given[v - first]
        else:
            draw_walk_keys(child_key(root, np.uint64(v)), m, M, s, keys)
            walk_from(indptr, indices, law, v, m, s * M, keys, here, before, offsets, steps)
        count = number_reach(v, steps, reach)
        links = link_reach(pair_ptr, pair_other, reach, count, links)
        if links.near.size > hits.size:
            hits, ordered = longer(hits, links.near.size), longer(ordered, links.near.size)

        step = 0
        for position in range(length):
            level = m - position // s if position < m * s else 0
            members[0] = 0
            seen_in[0] = token
            local[0] = 0
            size = 1
            for walk in range(M):
                for _ in range(level):
                    place = reach.step_place[step]
                    if seen_in[place] != token:
                        seen_in[place] = token
                        local[place] = size
                        members[size] = place
                        size += 1
                    walks[v - first, step] = local[place]
                    step += 1
                sizes[token, walk] = size

            num_hits = 0
            for b in range(size):
                place = members[b]
                nodes[n_nodes + b] = reach.nodes[place]
                for i in range(links.pointer[place], links.pointer[place + 1]):
                    a = local[links.near[i]]  # stale where that place is no member: then the hit is not counted
                    hits[num_hits] = (max(a, b) << later_shift) | (min(a, b) << 32) | (i << 1) | (a > b)
                    num_hits += seen_in[links.near[i]] == token
            _sort_hits(hits, num_hits, later_shift, size, start, fill, ordered)

            if n_edges + 2 * num_hits > edges.shape[0]:
                edges = longer(edges, n_edges + 2 * num_hits)
                if keep_slots:
                    slots = longer(slots, edges.shape[0])
            before_token = n_edges
            if directed:
                for b in range(size):
                    edges_upto[b] = n_edges - before_token
                    for h in range(start[b], start[b + 1]):
                        a, pair = (
                            (ordered[h] >> 32) & earlier_mask,
                            links.pair[(ordered[h] >> 1) & 0x7FFFFFFF],
                        )
                        from_later, to_later = pair_out[pair], pair_back[pair]
                        if ordered[h] & 1:
                            from_later, to_later = to_later, from_later
                        if to_later >= 0:
                            n_edges = _emit(edges, slots, n_edges, a, b, to_later)
                        if from_later >= 0 and a != b:
                            n_edges = _emit(edges, slots, n_edges, b, a, from_later)
                edges_upto[size] = n_edges - before_token
                for walk in range(M):
                    edge_sizes[token, walk] = edges_upto[sizes[token, walk]]
            else:
                for h in range(num_hits):
                    edges[n_edges, 0] = (ordered[h] >> 32) & earlier_mask
                    edges[n_edges, 1] = ordered[h] >> later_shift
                    if keep_slots:
                        pair = links.pair[(ordered[h] >> 1) & 0x7FFFFFFF]
                        earlier_keeps = ordered[h] & 1
                        slots[n_edges, 0] = pair_out[pair] if earlier_keeps else pair_back[pair]
                        slots[n_edges, 1] = pair_back[pair] if earlier_keeps else pair_out[pair]
                    n_edges += 1
                for walk in range(M):
                    edge_sizes[token, walk] = start[sizes[token, walk]]
            node_count[token] = size
            edge_count[token] = n_edges - before_token
            n_nodes += size
            token += 1
        for place in range(count):
            reach.table_node[reach.home[place]] = -1
    return nodes[:n_nodes].copy(), edges[:n_edges].copy(), slots[: n_edges if keep_slots else 0].copy()
