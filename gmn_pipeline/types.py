"""Names for the array types that cross module borders."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.floating[Any]]
UInt64Array = npt.NDArray[np.uint64]
