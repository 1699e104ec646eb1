"""Minesweeper as Platonov et al. (2023) define it, on a grid of any size.

Each cell is linked to its up to eight neighbours. A fifth of the cells, drawn at random, are mines: the
label. Half of the cells, drawn at random and mines or not, are hidden. Features, in the order of the
published file:

    column 0       1 if the cell is hidden; then all others are 0
    columns 1..5   one-hot: 0, 1, 2, 3 or 4 of the neighbours are mines
    column 6       five or more are

Ten splits of 50/25/25, each part with its exact share of mines. Ids run row by row.
"""

from math import isqrt

import numpy as np
from numba import njit

from gmn_pipeline.counter_random import Purpose, child_keys, key_path
from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import Graph, id_dtype
from gmn_pipeline.task import Task
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.splits import draw_splits, first_by_key

DEFAULT_NODES = 10_000
MINE_SHARE, HIDDEN_SHARE = 0.2, 0.5
FEATURES = 7
SPLITS = 10
MINE_STREAM, HIDDEN_STREAM = 0, 1


def grid_shape(nodes: int) -> tuple[int, int]:
    """Rows and columns of the most square grid of that many cells; of about that many where that is a strip.

    A grid at most twice as wide as high is made exactly; otherwise isqrt(nodes) rows and the nearest whole
    columns.
    """
    if nodes < 1:
        raise DatasetError(f"minesweeper-grid cannot have {nodes} nodes; give --nodes 1 or more")
    rows = isqrt(nodes)
    for height in range(rows, 0, -1):
        if nodes > 2 * height * height:
            break
        if nodes % height == 0:
            return height, nodes // height
    return rows, (nodes + rows // 2) // rows


def load_minesweeper_grid(options: DatasetOptions) -> Graph:
    """The grid of `options.nodes` cells for `options.seed`."""
    rows, columns = grid_shape(DEFAULT_NODES if options.nodes is None else options.nodes)
    n = rows * columns
    # Summed over cells, 3x3 windows clipped at the border factor into rows and columns; the cell itself is not counted.
    slots = max(3 * rows - 2, 1) * max(3 * columns - 2, 1) - n
    mines = _choose(n, MINE_SHARE, options.seed, MINE_STREAM)
    hidden = _choose(n, HIDDEN_SHARE, options.seed, HIDDEN_STREAM)
    indptr = np.zeros(n + 1, dtype=np.int64)
    indices = np.empty(slots, dtype=id_dtype(n))
    x = np.zeros((n, FEATURES), dtype=np.float32)
    fill_grid(rows, columns, mines, hidden, indptr, indices, x)
    y = mines.astype(np.int64)
    # The constructor's checks suffice: rows are sorted and symmetric by construction, and a test holds that.
    # The full check would transpose the matrix: 2 s and 500 MB at five million cells.
    return Graph(
        indptr,
        indices,
        x=x,
        y=y,
        splits=draw_splits(n, (0.5, 0.25), options.seed, count=SPLITS, strata=y),
        task=Task.of("node", "binary", 2, "roc_auc"),
    )


def _choose(n: int, share: float, seed: int, stream: int) -> np.ndarray:
    """Mask of exactly round(share * n) of n items."""
    return first_by_key(child_keys(key_path(seed, Purpose.GENERATE, stream), n), round(share * n))


@njit(cache=True, nogil=True)
def fill_grid(rows, columns, mines, hidden, indptr, indices, x):  # type: ignore[no-untyped-def]
    """Write the CSR rows and the features of every cell, row by row."""
    slot = 0
    for r in range(rows):
        for c in range(columns):
            v = r * columns + c
            around = 0
            for nr in range(max(r - 1, 0), min(r + 2, rows)):
                for nc in range(max(c - 1, 0), min(c + 2, columns)):
                    u = nr * columns + nc
                    if u != v:
                        indices[slot] = u
                        slot += 1
                        around += mines[u]
            indptr[v + 1] = slot
            x[v, 0 if hidden[v] else 1 + min(around, 5)] = 1.0
