"""Positional and structural encodings of nodes."""

from gmn_prep.encodings.laplacian.encoding import LaplacianEncoding, laplacian_encoding
from gmn_prep.encodings.random_walk.encoding import RandomWalkEncoding, choose_random_walk_mode, random_walk_encoding

__all__ = [
    "LaplacianEncoding",
    "RandomWalkEncoding",
    "choose_random_walk_mode",
    "laplacian_encoding",
    "random_walk_encoding",
]
