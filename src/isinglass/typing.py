"""Types of arrays that the whole library uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""Numbers: float64, or complex128 where a derivative is carried along; of another kind where a function says so."""
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
DType = np.dtype[Any]
Mask = NDArray[np.bool_]
JsonObject = dict[str, Any]
"""Text, numbers, lists and further objects, by name: what a JSON object holds, and keyword options."""
