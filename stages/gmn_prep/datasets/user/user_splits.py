"""Which of the user's items are for training, validation and testing: as given, otherwise drawn."""

from typing import Any

import numpy as np

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.graph import TEST, TRAIN, VAL, Graph
from gmn_pipeline.types import Array
from gmn_prep.datasets.splits import draw_splits

MASKS = {"train_mask": TRAIN, "val_mask": VAL, "test_mask": TEST}
SHARES = (0.6, 0.2)
PARTS = (TRAIN, VAL, TEST)
FEWEST_GRAPHS = 10
"""With labelled nodes, from which a random split goes by whole graphs: two or more for each part."""


def read_splits(arrays: dict[str, Any]) -> Array | None:
    """(splits, items) codes from `splits`, or from masks of shape (items,) or (items, splits)."""
    masks = {key: np.atleast_2d(np.asarray(arrays[key]).T) for key in MASKS if key in arrays}
    if "splits" in arrays or not masks:
        if masks:
            raise DatasetError(f"found splits and {', '.join(masks)}; give one or the other")
        return arrays.get("splits")
    shapes = {mask.shape for mask in masks.values()}
    if len(shapes) > 1 or any(mask.dtype != np.bool_ for mask in masks.values()):
        raise DatasetError("masks must be boolean and of one shape: (items,) or (items, splits)")
    splits = np.zeros(shapes.pop(), dtype=np.uint8)
    for key, mask in masks.items():
        if np.any(splits[mask]):
            raise DatasetError(f"{key} overlaps another mask; an item is in one part of a split only")
        splits[mask] = MASKS[key]
    return splits


def complete_splits(graph: Graph, time: Array | None, seed: int) -> tuple[Graph, list[str]]:
    """The graph with a split that has something to test on, and what was drawn. Raises DatasetError."""
    known = known_items(graph)
    if time is not None:
        if graph.splits is not None:
            raise DatasetError("both --time and a split are given; leave one out")
        return graph.replace(splits=split_by_time(time, known)), [
            "split by time: the first 60% train, the last 20% test"
        ]
    if graph.splits is None:
        notes = [f"no split given: drew a random 60/20/20 split with seed {seed}"]
        rare = graph.y if graph.task is not None and graph.task.kind in ("multiclass", "binary") else None
        whole = _draw_graphs(graph, known, seed)
        if whole is not None and (rare is None or not _lacks_a_class(whole[0], rare)):
            notes[0] += ", each graph as a whole"
            return graph.replace(splits=whole), notes
        drawn = draw_splits(graph.num_items, SHARES, seed, strata=np.where(known, 0, -1))
        if rare is not None and _lacks_a_class(drawn[0], rare):
            drawn = _share_classes(drawn, rare, seed)
            notes[0] += ", each class by itself, as some are rare"
        if np.unique(drawn[drawn > 0]).size < 3:
            count = np.count_nonzero(known)
            notes.append(f"{count} labelled items are too few for training, validation and testing each")
        return graph.replace(splits=drawn), notes
    parts = set(np.unique(graph.splits).tolist()) & {TRAIN, VAL, TEST}
    if parts == {TRAIN}:
        return _draw_rest(graph, known, seed)
    if not np.any((graph.splits == TRAIN) & known):
        return graph, ["no training item has a label: the store serves to predict and evaluate, not to train"]
    return graph, []


def _draw_graphs(graph: Graph, known: Array, seed: int) -> Array | None:
    """A split of nodes that keeps the nodes of a graph together, as published sets of many graphs do: new graphs are
    what a model will meet. None where the items are no such nodes, or labelled graphs are too few."""
    if graph.graph_ptr is None or graph.task is None or graph.task.item != "node":
        return None
    sizes = np.diff(graph.graph_ptr)
    labelled = np.unique(np.repeat(np.arange(sizes.size), sizes)[known])
    if labelled.size < FEWEST_GRAPHS:
        return None
    strata = np.full(sizes.size, -1)
    strata[labelled] = 0
    drawn = np.repeat(draw_splits(sizes.size, SHARES, seed, strata=strata), sizes, axis=1)
    return np.where(known, drawn, 0).astype(np.uint8)


def _draw_rest(graph: Graph, known: Array, seed: int) -> tuple[Graph, list[str]]:
    """Validation and test items, half each of those that are not for training."""
    assert graph.splits is not None
    splits = np.array(graph.splits)
    for codes in splits:
        free = known & (codes == 0)
        if np.count_nonzero(free) < 2:
            raise DatasetError(
                "all items are for training and none are left to test on; leave the split out to draw one"
            )
        drawn = draw_splits(graph.num_items, (0.5, 0.5), seed, strata=np.where(free, 0, -1))[0]
        codes[drawn == TRAIN], codes[drawn == VAL] = VAL, TEST
    count = np.count_nonzero(splits[0] != TRAIN)
    note = f"only training items given: drew validation and test from the other {count:,} with seed {seed}"
    return graph.replace(splits=splits), [note]


def _lacks_a_class(codes: Array, y: Array) -> bool:
    """Whether a class of at least three items is missing from a part."""
    count = int(y.max(initial=-1)) + 1
    common = np.bincount(y[y >= 0], minlength=count) >= 3
    return any((np.bincount(y[(codes == part) & (y >= 0)], minlength=count)[common] == 0).any() for part in PARTS)


def _share_classes(drawn: Array, y: Array, seed: int) -> Array:
    """A split with at least one item of every class of three or more in every part; `drawn` serves for the others."""
    drawn = np.array(drawn)
    for value in np.flatnonzero(np.bincount(y[y >= 0]) >= 3):
        members = np.flatnonzero(y == value)
        fifth = max(1, round((1 - sum(SHARES)) * members.size))
        shares = ((members.size - 2 * fifth) / members.size, fifth / members.size)
        drawn[0, members] = draw_splits(drawn.shape[1], shares, seed, strata=np.where(y == value, 0, -1))[0, members]
    return drawn


def split_by_time(time: Array, known: Array) -> Array:
    """(1, items): the earliest for training, the latest for testing; equal times stay together where they can."""
    if np.isnan(time[known]).any():
        raise DatasetError("some labelled items have no time; fill it in, or leave --time out")
    order = np.flatnonzero(known)[np.argsort(time[known], kind="stable")]
    if order.size < 3:
        raise DatasetError(f"{order.size} labelled items are too few to split by time")
    first, second = (round(share * order.size) for share in (SHARES[0], sum(SHARES)))
    first, second = max(first, 1), min(max(second, 2), order.size - 1)
    ends = np.searchsorted(time[order], time[order[[first - 1, second - 1]]], side="right")
    if 0 < ends[0] < ends[1] < order.size:
        first, second = ends.tolist()
    splits = np.zeros((1, time.size), dtype=np.uint8)
    splits[0, order[:first]], splits[0, order[first:second]], splits[0, order[second:]] = TRAIN, VAL, TEST
    return splits


def known_items(graph: Graph) -> Array:
    """(items,) whether each item has a label."""
    y = graph.y
    assert y is not None
    return np.asarray(~np.isnan(y).all(axis=1) if y.dtype.kind == "f" else y >= 0)
