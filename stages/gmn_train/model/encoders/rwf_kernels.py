"""Random-walk features of stored walks: identity and adjacency windows from the token's own small adjacency."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def walk_windows(
    nodes, node_ptr, edges, edge_ptr, edge_rows, walks, m, M, s, level, directed, largest, window, first, last,
    states, steps, windows,
):  # fmt: skip
    """Fill the features of all walks of one level, of nodes first..last-1 of the chunk.

    One row per step, the start included: node, repeat, walk, step 0..level.
        states (rows,): row of the node's state.
        steps (rows,): row of the features of the edge walked to get here, -1 where there is none.
        windows (rows, 2*window - 1): 1 where this node is the one 1..window steps back, then where it is linked to the
        one 2..window steps back (one step back it always is).
    """
    length = 1 + m * s
    links = np.zeros((largest, largest), np.int64)  # 1 + 2*edge, or 2 + 2*edge against its direction; 0: no edge
    entry = 0  # where this level's walks begin in a node's row
    for higher in range(m, level, -1):
        entry += higher * M * s
    path = np.empty(level + 1, np.int64)
    for b in range(first, last):
        for repeat in range(s):
            t = b * length + (m - level) * s + repeat
            begin = node_ptr[t]
            for e in range(edge_ptr[t], edge_ptr[t + 1]):
                links[edges[e, 0], edges[e, 1]] = 1 + 2 * e
                if not directed and edges[e, 0] != edges[e, 1]:
                    links[edges[e, 1], edges[e, 0]] = 2 + 2 * e
            for walk in range(M):
                path[0] = 0
                for i in range(level):
                    path[i + 1] = walks[b, entry + (repeat * M + walk) * level + i]
                row = ((b * s + repeat) * M + walk) * (level + 1)
                for i in range(level + 1):
                    here = path[i]
                    states[row + i] = nodes[begin + here]
                    steps[row + i] = -1
                    if i > 0 and edge_rows.shape[0] > 0:
                        link = links[path[i - 1], here]
                        if link > 0:
                            steps[row + i] = edge_rows[(link - 1) // 2, (link - 1) % 2]
                    for back in range(1, window + 1):
                        seen = i >= back
                        windows[row + i, back - 1] = seen and path[i - back] == here
                        if back > 1:
                            linked = seen and (links[path[i - back], here] > 0 or links[here, path[i - back]] > 0)
                            windows[row + i, window + back - 2] = linked
            for e in range(edge_ptr[t], edge_ptr[t + 1]):
                links[edges[e, 0], edges[e, 1]] = 0
                links[edges[e, 1], edges[e, 0]] = 0
