"""Positional and structural encodings of nodes."""

from gmn_prep.encodings.laplacian import LaplacianEncoding, laplacian_encoding
from gmn_prep.encodings.random_walk import RandomWalkEncoding, random_walk_encoding

__all__ = ["LaplacianEncoding", "RandomWalkEncoding", "laplacian_encoding", "random_walk_encoding"]
