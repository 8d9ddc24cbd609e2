"""Whether numbers are finite, by several threads where there are many."""

from __future__ import annotations

import numpy as np

from isinglass.runtime.threads import team
from isinglass.typing import Array

PART = 2**18  # numbers that a thread looks at in one go


def all_finite(values: Array, threads: int = 1) -> bool:
    """Tell whether all values are finite.

    Examples
    --------
    >>> all_finite(np.ones(3)), all_finite(np.array([1e308, 1e308])), all_finite(np.array([1.0, np.nan]))
    (True, True, False)
    """
    if threads == 1 or values.size < 2 * PART or values.ndim == 0:
        return _sum_is_finite(values)
    rows = max(1, len(values) * PART // values.size)
    return all(team(threads)(_sum_is_finite, [(values[at : at + rows],) for at in range(0, len(values), rows)]))


def _sum_is_finite(values: Array) -> bool:
    """Tell the same by the sum, which takes half the time; where it is not finite, look at each value."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())
