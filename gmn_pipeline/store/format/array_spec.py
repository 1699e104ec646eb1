"""What one array of a store must be."""

from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int, ...]


@dataclass(frozen=True)
class ArraySpec:
    """Type and shape."""

    dtype: np.dtype[Any]
    shape: Shape


def array_spec(dtype: Any, *shape: int) -> ArraySpec:
    return ArraySpec(np.dtype(dtype), shape)
