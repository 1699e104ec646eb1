"""The settings that decide what tokens a store holds, and every size that follows from them."""

from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import numpy as np

from gmn_pipeline.errors import ConfigError, nearest
from gmn_pipeline.store.format.words import Walk

MAX_TOKEN_STEPS = 30_000
"""Largest M * m: a token's indices are packed into 15 bits while its edges are sorted."""
MAX_SEQUENCE = 1_000_000
"""Largest m * s: tokens of one node."""


def smallest_unsigned(value: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds `value`."""
    return next(np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64) if value <= np.iinfo(t).max)


@dataclass(frozen=True)
class TokenSettings:
    """What a token sequence is made of.

    A node's sequence is its tokens from level m down to level 1, s repeats each, then the level-0 token {v}. `m = 0`
    (or `s = 0`) means one token per node and is kept in one form, (0, 0, 0).
    """

    m: int
    """Longest walk: levels 1..m are sampled."""
    M: int
    """Walks per token."""
    s: int
    """Tokens (repeats) per level."""
    walk: Walk = "uniform"
    """uniform: any neighbour; non-backtracking: never straight back unless at a dead end."""
    seed: int = 0
    """Seed of the walks."""

    def __post_init__(self) -> None:
        for name in ("m", "M", "s"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must not be negative")
        if self.m * self.M > MAX_TOKEN_STEPS:
            raise ConfigError(
                f"m = {self.m} with M = {self.M} makes tokens too large; m * M is at most {MAX_TOKEN_STEPS:,}"
            )
        if self.m * self.s > MAX_SEQUENCE:
            raise ConfigError(
                f"m = {self.m} with s = {self.s} makes sequences too long; m * s is at most {MAX_SEQUENCE:,}"
            )
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed is {self.seed}; it must lie in 0..2**63-1")
        if self.walk not in get_args(Walk):
            allowed = get_args(Walk)
            raise ConfigError(f"walk is '{self.walk}'; allowed: {', '.join(allowed)}{nearest(self.walk, allowed)}")
        if self.m == 0 or self.s == 0:
            for name in ("m", "M", "s"):
                object.__setattr__(self, name, 0)
        elif self.M == 0:
            raise ConfigError(f"M is 0 with m = {self.m}; a token needs at least one walk: use M >= 1, or m = 0")

    @property
    def sequence_length(self) -> int:
        """L: tokens per node."""
        return 1 + self.m * self.s

    @property
    def walk_entries(self) -> int:
        """W: steps of all walks of a node, the start (always local index 0) not counted."""
        return self.M * self.s * self.m * (self.m + 1) // 2

    @property
    def max_token_nodes(self) -> int:
        """No token has more nodes."""
        return 1 + self.M * self.m

    def max_token_edges(self, directed: bool) -> int:
        """No token has more edges, a self-loop at every node included."""
        k = self.max_token_nodes
        return k * k if directed else k * (k + 1) // 2

    @property
    def local_dtype(self) -> np.dtype[Any]:
        """Type of indices into a token's node list, and of its length."""
        return smallest_unsigned(self.max_token_nodes)

    @property
    def levels(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """(L,) the level at each position of a sequence: m, ..., m, m-1, ..., 1, 0."""
        return np.append(np.repeat(np.arange(self.m, 0, -1), self.s), 0)

    def covers(self, other: "TokenSettings") -> bool:
        """Whether a store made with these settings serves `other` by slicing."""
        if other.m == 0:
            return True
        same_walks = (self.walk, self.seed) == (other.walk, other.seed)
        return same_walks and self.m >= other.m and self.M >= other.M and self.s >= other.s

    def smaller(self, m: int | None = None, M: int | None = None, s: int | None = None) -> "TokenSettings":
        """These settings with a smaller m, M or s; ConfigError where more is asked than there is."""
        wanted = replace(self, m=self.m if m is None else m, M=self.M if M is None else M, s=self.s if s is None else s)
        if not self.covers(wanted):
            raise ConfigError(
                f"asked for m={wanted.m} M={wanted.M} s={wanted.s}, but the store has m={self.m} M={self.M} "
                f"s={self.s}; ask for no more than that, or tokenize again with larger settings"
            )
        return wanted

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
