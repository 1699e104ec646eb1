"""Cases from Hypothesis: structured values, a function of a seed, with the corners that a plain draw misses."""

from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st


def draw_cases(strategy: "st.SearchStrategy[Any]", seed: int, count: int) -> list[Any]:
    """`count` values of a strategy; the same for the same seed."""
    found: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count + 1, database=None, phases=[Phase.generate], deadline=None,
        suppress_health_check=list(HealthCheck), derandomize=False,
    )  # fmt: skip
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found[1 : count + 1] or found  # the first is the simplest one there is, in every seed


BORDERS = [0, 1, -1, 2, 39, 40, 41, 255, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 10**9, 10**12, 2**53, 2**63 - 1]
WHOLE = st.sampled_from([*BORDERS, -(2**63), 2**63, 2**64, 10**30]) | st.integers(-100, 100)
REAL = st.sampled_from([0.0, -0.0, 0.5, 1e-45, 1e38, 1e300, float("nan"), float("inf"), float("-inf")])
TEXT = st.sampled_from(
    ["", " ", "./", ".", "..", "../x", "a" * 300, "a/b", "[/x]", "[bold]", "\0", "\n", "ü", "\ud800", "\u202e", "{}",
     "%s", "-", "--", "nan", "inf", "1e999", "0x10", "true", "none", "null", "1,2", "a=b", "*", "~", "$HOME",
     "s.zarr", "g.npz", "r"]
) | st.text(max_size=6)  # fmt: skip
VALUE: "st.SearchStrategy[Any]" = st.recursive(
    st.none() | st.booleans() | WHOLE | REAL | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
