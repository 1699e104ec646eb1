"""Sums over rows whose bits do not depend on the number of threads."""

from collections.abc import Callable

import numpy as np

from gmn_pipeline.types import Array
from gmn_train.machine.threads import run_tasks
from gmn_train.model.message_passing.edge_order import row_ranges


def sum_over_ranges(rows: int, shape: tuple[int, ...], add: Callable[[tuple[int, int], Array], None]) -> Array:
    """The sum, in range order, of what add(range, total) adds to a float64 total for each range of rows."""
    ranges = row_ranges(rows)
    totals = np.zeros((len(ranges), *shape))
    run_tasks(lambda number: add(ranges[number], totals[number]), range(len(ranges)))
    total: Array = totals.sum(0)
    return total
