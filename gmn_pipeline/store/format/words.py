"""Words that settings of a store may be. Commands offer them before anything heavy is imported."""

from typing import Literal

Walk = Literal["uniform", "non-backtracking"]
Codec = Literal["raw", "zstd"]
Check = Literal["full", "sampled", "none"]
"""Which checksums a reader compares."""
