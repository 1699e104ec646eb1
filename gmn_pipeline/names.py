"""Names of feature columns: what they may be, and how the columns of one graph serve a model of another.

A column of text becomes one column of zeros and ones per value, named `column=value`.
"""

from collections.abc import Sequence

import numpy as np

from gmn_pipeline.errors import GraphError, nearest
from gmn_pipeline.types import IntArray

LONGEST = 1000
"""Characters of a name: names are part of the manifest, which is read whenever a store is opened."""


def check_names(what: str, names: Sequence[str], count: int) -> None:
    """Raise GraphError unless there are `count` names, all different and not over-long."""
    if len(names) != count:
        raise GraphError(f"{len(names)} {what} for {count}; give one each")
    for name in names:
        if not isinstance(name, str) or len(name) > LONGEST:
            raise GraphError(f"{what} must be text of at most {LONGEST:,} characters; found {str(name)[:40]!r}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise GraphError(f"{what} hold '{twice}' twice; each needs its own")


def match_columns(wanted: Sequence[str], present: Sequence[str]) -> tuple[IntArray, tuple[str, ...]]:
    """Which column of `present` serves each of `wanted`, (len(wanted),), and the names of those that serve none.

    -1 stands for a column of zeros: a value `column=value` that this graph's text does not have. Raises GraphError for
    a column that is missing.
    """
    place = {name: i for i, name in enumerate(present)}
    texts = {name.split("=", 1)[0] for name in present if "=" in name}
    out = []
    for name in wanted:
        if name not in place and ("=" not in name or name.split("=", 1)[0] not in texts):
            near = nearest(name, tuple(present))
            raise GraphError(f"there is no column '{name}', which the model was trained on{near}")
        out.append(place.get(name, -1))
    return np.array(out, dtype=np.int64), tuple(name for name in present if name not in set(wanted))
